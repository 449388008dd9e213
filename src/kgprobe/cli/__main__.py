"""Entry point of `python -m kgprobe.cli`."""

from kgprobe.cli import main

if __name__ == "__main__":
    main()
