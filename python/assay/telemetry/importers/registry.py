"""Every format that can be imported, in the order in which they are tried."""

from __future__ import annotations

from assay.telemetry.importers.atop import AtopLines, AtopText
from assay.telemetry.importers.azure_monitor import AzureMonitor
from assay.telemetry.importers.cloudwatch import CloudWatch
from assay.telemetry.importers.collectl import CollectlPlot
from assay.telemetry.importers.collectl_text import CollectlText
from assay.telemetry.importers.diskstats import Diskstats
from assay.telemetry.importers.esxtop import Esxtop
from assay.telemetry.importers.fio_logs import FioLog
from assay.telemetry.importers.hammerdb import HammerDbCounter, HammerDbLog, HammerDbProfile
from assay.telemetry.importers.importer import Importer
from assay.telemetry.importers.iostat import IostatJson, IostatText
from assay.telemetry.importers.load_logs import BenchBase, GoTpc, PgbenchSummary, Sysbench
from assay.telemetry.importers.nfsiostat import NfsIostat
from assay.telemetry.importers.nmon import Nmon
from assay.telemetry.importers.pcp import Pcp2Json, PmrepCsv
from assay.telemetry.importers.perfmon import Perfmon
from assay.telemetry.importers.pgbench import PgbenchLog, PgbenchProgress
from assay.telemetry.importers.prometheus import Prometheus
from assay.telemetry.importers.sar import Sar, SarXml
from assay.telemetry.importers.sysstat_text import SadfLines, SarText
from assay.telemetry.importers.vmstat import Vmstat
from assay.telemetry.importers.vscsistats import VscsiStats

IMPORTERS: tuple[Importer, ...] = (
    # Perfmon last of the two: batch files of esxtop have its header too.
    Esxtop(), Perfmon(), Sar(), SarXml(), IostatJson(), IostatText(), SadfLines(), SarText(), Vmstat(),
    Prometheus(), CloudWatch(), AzureMonitor(), PgbenchProgress(), PgbenchLog(),
    HammerDbCounter(), HammerDbProfile(), HammerDbLog(), Sysbench(), GoTpc(),
    BenchBase(), PgbenchSummary(), FioLog(), Nmon(), NfsIostat(), AtopText(), AtopLines(), CollectlPlot(),
    CollectlText(), PmrepCsv(), Pcp2Json(), VscsiStats(),
    # Last: rows of other programs have names among numbers, too.
    Diskstats(),
)  # fmt: skip


def importer_of(head: str) -> Importer | None:
    """The importer of a file that begins so; None if no format is known by it."""
    return next((one for one in IMPORTERS if one.recognises(head)), None)
