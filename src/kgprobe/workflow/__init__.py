"""The DAG in plain Python: which model answers what, output files, access to sources, memory and
threads. Rule files import it; scripts of rules must not, so that no job's hash includes it."""
