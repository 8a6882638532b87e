"""Every threshold of the diagnosis, and where it comes from.

`PAL` is Performance Analysis of Logs (files QuickSystemOverview.xml and SQLServer2014.xml); `the method` is the
published method that Assay automates: its limits for databases. Where no published bound is known, the source says
that it is Assay's own, and why it lies there.
"""

from __future__ import annotations

from assay.insight.diagnosis.signals import Threshold

MS = 1_000_000.0

CPU_BUSY = Threshold(value=0.80, unit="share", source="PAL: Processor, % Processor Time, critical above 80 %")
CPU_WAITING = Threshold(
    value=2.0, unit="per CPU", source="PAL: System, Processor Queue Length, warning above 2 a processor"
)
CPU_PRESSURE = Threshold(
    value=0.20, unit="share",
    source="Assay: a fifth of the time some task waits for a processor (kernel documentation, accounting/psi)",
)  # fmt: skip
CPU_STEAL = Threshold(
    value=0.10, unit="share", source="esxtop practice: %RDY from 10 % of a virtual processor on is felt"
)
CPU_COSTOP = Threshold(value=0.03, unit="share", source="esxtop practice: %CSTP from 3 % on")
GUEST_BUSY = Threshold(
    value=0.95, unit="share", source="Assay: a guest that uses nearly all of its processors has none left"
)

MEMORY_AVAILABLE = Threshold(
    value=0.10, unit="share", below=True, source="PAL: Memory, Available MBytes, warning below 10 % of memory"
)
MEMORY_PRESSURE = Threshold(
    value=0.10, unit="share",
    source="Assay: a tenth of the time some task waits for memory (kernel documentation, accounting/psi)",
)  # fmt: skip
PAGING = Threshold(value=1000.0, unit="1/s", source="PAL: Memory, Pages/sec, warning above 1,000")
MAJOR_FAULTS = Threshold(
    value=500.0,
    unit="1/s",
    source="Assay: each is a read for which a program waits; 500 of 1 ms keep half a task waiting",
)
GRANTS_WAITING = Threshold(
    value=1.0, unit="count", source="PAL: SQL Server Memory Manager, Memory Grants Pending, above 0"
)
FREE_LIST_STALLS = Threshold(
    value=2.0, unit="1/s", source="PAL: Buffer Manager, Free list stalls/sec, critical above 2"
)
LAZY_WRITES = Threshold(value=20.0, unit="1/s", source="PAL: Buffer Manager, Lazy writes/sec, critical above 20")
PAGE_LIFE = Threshold(
    value=300e9, unit="ns", below=True, source="PAL: Buffer Manager, Page life expectancy, critical below 300 s"
)

HIT_SHARE = Threshold(
    value=0.90, unit="share", below=True, source="PAL: Buffer Manager, Buffer cache hit ratio, critical below 90 %"
)
WAITS = Threshold(
    value=0.25, unit="share", source="Assay: a quarter of the sessions at work waits for one kind of event"
)

RETRANSMITS = Threshold(
    value=0.005, unit="share", source="the method: TCP retransmits stay below 0.5 % on a storage network"
)
DROPS = Threshold(value=1.0, unit="1/s", source="PAL: Network Interface, Packets Outbound Errors, above 1")
TIMEOUTS = Threshold(
    value=0.5,
    unit="1/s",
    source="Assay: a tenth of the time some connection stands still, 200 ms or longer each (RFC 6298, Linux's least)",
)
STALL = Threshold(
    value=200 * MS, unit="ns", source="RFC 6298 and Linux: 200 ms is the least time before a lost segment is sent again"
)
NET_BUSY = Threshold(value=0.50, unit="share", source="PAL: Network Interface, utilisation, critical above 50 %")

READ_LATENCY = Threshold(value=20 * MS, unit="ns", source="the method: mean read latency at most 20 ms")
WRITE_LATENCY = Threshold(value=20 * MS, unit="ns", source="the method: mean write latency at most 20 ms")
LOG_LATENCY = Threshold(value=5 * MS, unit="ns", source="the method: mean log write latency at most 5 ms")
FLUSH_LATENCY = Threshold(
    value=20 * MS, unit="ns", source="the method: mean write latency at most 20 ms; a commit waits for a flush"
)
OUTSTANDING = Threshold(
    value=1.0, unit="count", source="Little's law: an I/O is under way all the time, and (almost) none completes"
)
STANDSTILL = Threshold(
    value=1000 * MS, unit="ns",
    source="Assay: a second for an I/O, fifty times the method's 20 ms (Little's law: outstanding over throughput)",
)  # fmt: skip
IOWAIT = Threshold(
    value=0.20, unit="share",
    source="Assay: a fifth of processor time is idle while a task of that processor waits for I/O (proc(5), iowait)",
)  # fmt: skip
DEVICE_IDLE = Threshold(
    value=0.50, unit="share", below=True, source="Assay: a device that is idle half of the time holds no task up"
)
CORE_FULL = Threshold(
    value=0.95, unit="share", source="Assay: a processor that has no time left, as of a guest that uses all it has"
)
CORES_IDLE = Threshold(
    value=0.70, unit="share", below=True, source="Assay: a third of all processor time is free beside the full one"
)
AT_LIMIT = Threshold(
    value=0.95, unit="ratio", source="Assay: within 5 % of the most that was seen: a limit cuts off, a disk scatters"
)
CONSUMED = Threshold(
    value=0.95, unit="share",
    source="Microsoft, Disk performance metrics: at 100 % it is capped; Assay: a mean of a minute comes to 95 %",
)  # fmt: skip
BURST_EMPTY = Threshold(
    value=0.01, unit="share", below=True, source="AWS, EBS volume types: without credit a volume has its baseline alone"
)
EXCEEDED = Threshold(
    value=0.5, unit="share", source="AWS, CloudWatch metrics for EBS: the check is 1 where more was asked for"
)
THROTTLED = Threshold(
    value=0.01, unit="share", source="NVM Express, thermal management transition counts and times: any growth"
)
HOT = Threshold(
    value=1.0, unit="ratio", source="NVM Express, Identify Controller: the drive's own warning temperature (WCTEMP)"
)
DRIVE_FAILS = Threshold(
    value=1 / 3600, unit="1/s", source="Assay: any reset, failed I/O or media error; one an hour is one too many"
)
SIDES = Threshold(value=4.0, unit="ratio", source="Assay: writes take four times as long as reads of the same device")
RESPONSE = Threshold(value=2e9, unit="ns", source="the method: transactions answer within 2 s")
STALLED = Threshold(
    value=0.50, unit="share", below=True, source="Assay: less than half of the throughput of the minutes around"
)
QUEUE = Threshold(value=2.0, unit="count", source="PAL: PhysicalDisk, Avg. Disk Queue Length, above 2")
DISK_BUSY = Threshold(
    value=0.90, unit="share", source="PAL: LogicalDisk, % Idle Time, below 10 %; of single disks, not of arrays"
)
LINK_BUSY = Threshold(value=0.80, unit="share", source="Assay: queueing doubles waiting at 80 % of a link (M/D/1)")
IO_PRESSURE = Threshold(
    value=0.30, unit="share",
    source="Assay: for a third of the time some task waits for I/O (kernel documentation, accounting/psi)",
)  # fmt: skip
KERNEL_LATENCY = Threshold(value=2 * MS, unit="ns", source="esxtop practice: KAVG above 2 ms")
QUEUED = Threshold(
    value=1.0, unit="count", source="esxtop practice: commands queue in the kernel where QUED is above 0"
)
UNDER_WAY = Threshold(
    value=0.80, unit="share", source="Little's law: throughput times latency is what is under way; four fifths of all"
)
ABOVE_DEVICE = Threshold(
    value=2.0,
    unit="ratio",
    source="Assay: of the time of an I/O more is spent above the storage than in it (Little's law)",
)

TWICE = Threshold(value=2.0, unit="ratio", source="Assay: twice the value of comparable ones")
HALF_MORE = Threshold(value=1.5, unit="ratio", source="Assay: half as much again as at other times")
DECLINE = Threshold(
    value=0.70, unit="ratio", below=True, source="Assay: throughput falls by 30 % or more and stays there"
)
FOREIGN = Threshold(value=0.50, unit="share", source="Assay: more of the bytes is of others than of what is examined")
FLUSHING = Threshold(
    value=0.50, unit="share", source="Assay: half of the time a flush is under way, for which a commit waits"
)
FROM_DEVICES = Threshold(
    value=0.50, unit="share", source="Assay: half of what the database reads is in no page cache of the kernel either"
)

LOCK_WAITING = Threshold(value=1.0, unit="count", source="Assay: a session waits for a lock on it at each look")
LOCK_TIME = Threshold(
    value=500 * MS, unit="ns/s", source="PAL: SQL Server Locks, Lock Wait Time, warning above 500 ms a second"
)
ROW_LOCK_LATENCY = Threshold(
    value=10 * MS, unit="ns", source="PAL: Latches, Average Latch Wait Time, above 10 ms; as much for a row's lock"
)
LATCH_LATENCY = Threshold(
    value=10 * MS, unit="ns", source="PAL: SQL Server Latches, Average Latch Wait Time, above 10 ms"
)
CHECKPOINTS = Threshold(
    value=2.0, unit="per min", source="PostgreSQL, checkpoint_warning: checkpoints closer than 30 s"
)
CHECKPOINT_SHARE = Threshold(value=0.50, unit="share", source="Assay: half of what is written or more is checkpoints'")
LOG_USED = Threshold(value=0.80, unit="share", source="PAL: SQL Server Databases, Percent Log Used, above 80")
EXTENSIONS = Threshold(
    value=100.0,
    unit="1/s",
    source="Assay: a file that grows a hundred times a second grows in steps that are too small",
)
WAITED = Threshold(value=0.01, unit="share", source="Assay: one write in a hundred waits for room in the cache")
SPLIT = Threshold(
    value=1.5, unit="ratio", source="Assay: two I/Os of the device for one of the program, and some that are not split"
)
EVEN = Threshold(value=0.80, unit="ratio", source="Assay: at least four fifths of the mean share of a path")
PATH_LOST = Threshold(value=1.0, unit="count", source="Assay: any path that the kernel says does not run")
MISSING = Threshold(value=1.0, unit="count", source="Assay: any disk that is missing; RAID promises its level with all")
REBUILDS = Threshold(value=1.0, unit="bytes/s", source="Assay: any byte that is rebuilt")
DIRTY = Threshold(
    value=0.18, unit="share", source="Linux, vm.dirty_ratio: writers stand still at 20 % of what is available"
)
FULL_PAGES = Threshold(
    value=0.50,
    unit="share",
    source="Assay: half of the log is pages written whole after checkpoints (PostgreSQL, full_page_writes)",
)
