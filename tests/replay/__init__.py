"""The world as it answers programs, on loopback: what `snakemake` meets on the public services."""
