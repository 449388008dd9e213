# kgprobe: how much of a knowledge graph does a language model know and understand?
# Rules follow the flow of data: sources -> knowledge -> benchmarks -> probes -> tables.
import os

from kgprobe.experiments import located
from snakemake.utils import min_version

min_version("9.27")


# with --directory or as a module, the working folder may have its own copy; otherwise the copy next
# to this file is used
CONFIG = located("config/config.yaml")


configfile: CONFIG if os.path.exists(CONFIG) else workflow.source_path(CONFIG)


include: "workflow/rules/common.smk"
include: "workflow/rules/sources.smk"
include: "workflow/rules/knowledge.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/probes.smk"
include: "workflow/rules/prompts.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/exports.smk"


rule all:
    default_target: True
    input:
        "<results>/tables/headline.txt",
        "<results>/report/index.html",
        # also read by commands; made again if deleted
        tables.results_files(RUN),
        tables.results_files(RUN, "judged"),
        tables.side_files(RUN),
