"""The DAG as plain Python: which model answers what, which files that makes, how sources are had,
memory and threads. Rule files import it; no rule's script may, so that it is in no job's hash."""
