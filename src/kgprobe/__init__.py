"""What does a language model know of a knowledge graph, and does it understand it?"""

__version__ = "0.1.0"
