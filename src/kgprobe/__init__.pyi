from kgprobe.library import Results as Results
from kgprobe.library import ask as ask
from kgprobe.library import load as load
from kgprobe.library import probe as probe
from kgprobe.questions import Benchmark as Benchmark
from kgprobe.questions import benchmark as benchmark

__version__: str
