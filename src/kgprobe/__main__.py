"""Entry point of `kgprobe` and of `python -m kgprobe`: imports nothing before it handles Ctrl-C."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C during the imports exits with one line, too."""
    try:
        from kgprobe.cli import main as command
    except KeyboardInterrupt:
        print("kgprobe: stopped", file=sys.stderr)
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
