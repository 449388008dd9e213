from kgprobe.library import Benchmark as Benchmark
from kgprobe.library import Results as Results
from kgprobe.library import ask as ask
from kgprobe.library import benchmark as benchmark
from kgprobe.library import load as load
from kgprobe.library import probe as probe

__version__: str
