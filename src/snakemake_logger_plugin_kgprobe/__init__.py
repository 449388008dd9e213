"""The workflow's terminal, as Snakemake finds it: `logger: kgprobe` in a profile.

Until jobs begin (parsing, planning), and where none will (dry runs, graphs, lint), Snakemake's own
handler says what it always does. `kgprobe.terminal` shows the jobs. The whole log of a run lies in
`.snakemake/log` as ever.
"""

import logging
import os
import sys

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from kgprobe.guard import stopping
from kgprobe.terminal import Job, View

#: what is not said of a run that begins: host, versions and cores stand in the whole log
HEAD = (LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO)


class LogHandler(LogHandlerBase):
    """Records of Snakemake, shown as `kgprobe.terminal` does."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        # where this module is imported, snakemake.logging is still being imported
        from snakemake.logging import ColorizingTextHandler

        settings = self.common_settings
        stream = sys.stdout if settings.stdout else sys.stderr
        self.plain = ColorizingTextHandler(nocolor=settings.nocolor, stream=stream)
        self.view: View | None = None

    def setFormatter(self, fmt: logging.Formatter | None) -> None:  # noqa: N802  (logging's name)
        """The formatter of what Snakemake's own handler says."""
        super().setFormatter(fmt)
        self.plain.setFormatter(fmt)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, or keep what it tells."""
        try:
            self._emit(record)
        except Exception:
            self.handleError(record)

    def _emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        told = vars(record)
        # jobs that are ended have not failed; the guard's line is the last
        if stopping.is_set() and event != LogEvent.JOB_FINISHED:
            return
        if event == LogEvent.RUN_INFO and not self.common_settings.dryrun:
            if self.view is None:
                stats = {k: v for k, v in told["stats"].items() if k != "total"}
                # jobs write to the same terminal: their progress is in their logs, and shown here
                os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
                os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
                self.view = View(stats, is_plain=self.common_settings.nocolor)
            return
        if self.view is None:
            if event not in HEAD or self.common_settings.dryrun:
                self.plain.emit(record)
        elif event == LogEvent.JOB_INFO:
            wildcards = dict(told["wildcards"] or {})
            self.view.add(told["jobid"], Job(told["rule_name"], wildcards, list(told["log"] or [])))
        elif event == LogEvent.JOB_STARTED:
            self.view.start(told["jobs"])
        elif event == LogEvent.JOB_FINISHED:
            self.view.finish(told["job_id"])
        elif event == LogEvent.JOB_ERROR:
            self.view.fail(told["jobid"], str(told["rule_msg"] or ""), list(told["log"] or []))
        elif event == LogEvent.GROUP_ERROR:
            self.view.say(self.format(record))
        elif record.levelno >= logging.WARNING:
            self.view.hear(record.getMessage(), is_error=record.levelno >= logging.ERROR)
        elif record.getMessage().startswith("Complete log"):
            self.view.log = os.path.relpath(record.getMessage().partition(": ")[2])

    def close(self) -> None:
        """The end of the run: what was made, or the first error; of a stop the guard tells."""
        if self.view is not None:
            self.view.end(is_stopped=stopping.is_set())
            self.view = None
        super().close()
