"""A loopback replay of the public services that `snakemake` contacts."""
