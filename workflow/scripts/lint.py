"""Check that files generated from the settings are up to date, then run `snakemake --lint` and
ignore only its request for conda or a container per rule.

The workflow has one environment for all rules (environment.yml), so that request does not apply.
"""

import re
import subprocess
import sys

from kgprobe import config

stale = config.main(["check"])
result = subprocess.run(
    ["snakemake", "--lint", "--configfile", "config/embedded.yaml"], capture_output=True, text=True
)
text = result.stdout + result.stderr
complaints = re.findall(r"^    \* (.+?):", text, flags=re.MULTILINE)
others = [c for c in complaints if c != "Specify a conda environment or container for each rule."]
if not complaints and result.returncode:
    others = [text]
for complaint in others:
    print(complaint, file=sys.stderr)
sys.exit(1 if others or stale else 0)
