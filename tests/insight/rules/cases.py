"""For each rule the facts of a subject that breaks it, and what has to change for it to hold."""

from __future__ import annotations

from typing import Any, NamedTuple

MIB, GIB, TB = 2**20, 2**30, 10**12


class Case(NamedTuple):
    """Facts that break a rule, and those of them that mend it."""

    broken: dict[str, Any]
    mended: dict[str, Any]


def case(fact: str, broken: Any, good: Any, **others: Any) -> Case:
    """A rule that one fact decides; the others make it apply."""
    return Case({fact: broken, **others}, {fact: good})


STORAGE = {"is_storage": True, "is_virtual": False}
CACHE = {"shared_buffers_bytes": 4 * GIB}
MEMORY = {"memory_bytes": 100 * GIB}
BINLOG = {"log_bin": "ON"}
FLASH = {"data_is_flash": True}
ANALYSIS = {"workload": "analysis"}
GUEST = {"is_guest": True}

CASES: dict[str, Case] = {
    # Layout
    "layout-log-apart": case("log_devices", ["sda"], ["sdb"], data_devices=["sda", "sdc"]),
    "layout-tempdb-apart": case("tempdb_devices", ["sdb"], ["sdc"], log_devices=["sdb"]),
    "layout-not-system-disk": case("data_mounts", ["/", "/data"], ["/data"]),
    "layout-backup-apart": case("backup_devices", ["sda"], ["sdz"], data_devices=["sda"]),
    "layout-raid-log": case("log_raid", "50", "10"),
    "layout-raid-transactions": case("data_raid", "6", "10", workload="transactions"),
    "layout-raid-analysis": case("data_raid", "10", "50", **ANALYSIS),
    "layout-raid-none": case("data_raid", "0", "50"),
    "layout-allocation-unit": case("allocation_unit_bytes", 4096, 65536),
    # Hosts
    "host-swappiness": case("vm.swappiness", 60, 10, swap_bytes=GIB),
    "host-swap-used": case("swap_used_bytes", 6 * GIB, 4 * GIB, swap_bytes=8 * GIB, **MEMORY),
    "host-dirty-ratio": case("vm.dirty_ratio", 40, 20, **{"vm.dirty_bytes": 0}, **MEMORY),
    "host-dirty-background": case("vm.dirty_background_ratio", 20, 5, **{"vm.dirty_ratio": 20, "vm.dirty_bytes": 0}),
    "host-overcommit-mode": case("vm.overcommit_memory", 1, 2),
    "host-zone-reclaim": case("vm.zone_reclaim_mode", 1, 0),
    "host-numa-balancing": case("kernel.numa_balancing", 1, 0, numa_nodes=2),
    "host-transparent-huge-pages": case("transparent_hugepage", "always", "madvise"),
    "host-governor": case("cpu_governor", "powersave", "performance"),
    "host-energy-preference": case("energy_preference", "power", "balance_performance"),
    "host-clock-source": case("clock_source", "hpet", "tsc"),
    "host-clock-synchronised": case("clock_synchronised", False, True),
    "host-aio-limit": case("fs.aio-max-nr", 65536, 1048576, has_aio_database=True),
    "host-open-files": case("nofile_limit", 1024, 65536),
    "host-huge-pages-unused": case("hugepages_free", 1000, 100, hugepages_total=1000),
    "host-interrupts": case("interrupt_share_busiest", 0.95, 0.3, cpu_count=16),
    # Block devices and file systems
    "device-scheduler": case("scheduler", "bfq", "mq-deadline"),
    "device-scheduler-nvme": case("scheduler", "mq-deadline", "none", transport="nvme"),
    "device-nr-requests": case("nr_requests", 8, 64),
    "device-queue-depth": case("queue_depth", 1, 32, takes_scsi=True),
    "device-read-ahead-small": case("read_ahead_bytes", 0, 128 * 1024),
    "device-read-ahead-large": case("read_ahead_bytes", 64 * MIB, 4 * MIB),
    "device-max-io": case("max_io_bytes", 64 * 1024, MIB, max_hw_io_bytes=4 * MIB),
    "device-write-cache-volatile": case("write_cache", "write back", "write through", transport="scsi", rotational=1),
    "device-entropy": case("add_random", 1, 0, transport="sata", is_flash=True),
    "device-writeback-throttle": case("wbt_lat_us", 2000, 0, is_data=True, scheduler="none"),
    "device-timeout": case("timeout_s", 5, 30, takes_scsi=True),
    "device-alignment": case("misaligned_partitions", ["sda1 begins at 32,256 bytes"], []),
    "mount-atime": case("options", ["rw", "strictatime"], ["rw", "noatime"], file_system="ext4"),
    "mount-barrier": case("options", ["rw", "nobarrier"], ["rw"]),
    "mount-data-writeback": case("options", ["rw", "data=writeback"], ["rw"], file_system="ext4"),
    "mount-online-discard": case("options", ["rw", "discard"], ["rw"], file_system="xfs"),
    "mount-free": case("free_share", 0.07, 0.3),
    "mount-full": case("free_share", 0.02, 0.07),
    "mount-nfs-hard": case("options", ["rw", "soft"], ["rw", "hard"], file_system="nfs4"),
    "mount-nfs-size": case("nfs_wsize", 4096, 1048576, nfs_rsize=1048576, file_system="nfs"),
    "mount-layered": case("file_system", "tmpfs", "xfs", is_data=True),
    # Initiators and multipath
    "multipath-paths": case("paths_running", 1, 2),
    "multipath-failed": case("paths_failed", 1, 0),
    "multipath-policy": case("policy", "failover", "service-time"),
    "multipath-used": case("ios_by_path", {"sda": 5000, "sdb": 0}, {"sda": 5000, "sdb": 4000}),
    "iscsi-sessions": case("sessions_per_target", {"iqn.a": 1}, {"iqn.a": 2}),
    "iscsi-session-state": case("failed_sessions", ["session2: FAILED"], []),
    "iscsi-recovery-timeout": case("recovery_timeout_s", 120, 15, has_multipath=True),
    "iscsi-recovery-timeout-single": case("recovery_timeout_s", 15, 120, has_multipath=False),
    "iscsi-queue-depth": case("can_queue", 8, 128),
    "iscsi-digests": case("data_digest", "CRC32C", "None"),
    "iscsi-transfer": case("max_transfer_bytes", 65536, 262144),
    "iscsi-cpu": case("cpu_share", 0.25, 0.04),
    "fc-port-state": case("port_state", "Linkdown", "Online"),
    "fc-crc-errors": case("invalid_crc_count", 500, 0, rx_frames=10**8),
    # Network
    "network-jumbo": case("mtu", 1500, 9000, **STORAGE),
    "network-jumbo-hops": case("jumbo_on_all_hops", False, True),
    "network-flow-control": case("pause_rx", False, True, **STORAGE),
    "network-flow-control-switch": case("flow_control", False, True),
    "network-spanning-tree": case("spanning_tree_on_storage_ports", True, False),
    "network-apart": case("storage_network_apart", False, True),
    "network-redundant": case("switches", 1, 2),
    "network-host-paths": case("storage_links", ["eth1"], ["eth1", "eth2"]),
    "network-ring-buffers": case("ring_rx", 256, 4096, ring_rx_max=4096, **STORAGE),
    "network-drops": case("dropped_share", 0.01, 0.0, packets=10**6),
    "network-errors": case("error_share", 0.001, 0.0, packets=10**6),
    "network-speed": case("speed_bits_per_s", 10**8, 10**9, is_virtual=False),
    "network-duplex": case("duplex", "half", "full", is_virtual=False),
    "network-scan-speed": case("speed_bits_per_s", 10**9, 10**10, **STORAGE, **ANALYSIS),
    "network-retransmits": case("tcp_retransmit_share", 0.02, 0.001, tcp_segments=10**7),
    "network-tcp-sack": case("net.ipv4.tcp_sack", 0, 1),
    "network-tcp-buffers": case("tcp_rmem_max", 174760, 6291456),
    "network-offloads": case("tso", False, True, **STORAGE),
    # Virtualisation
    "guest-disk-driver": case("driver", "ata_piix", "virtio_blk", **GUEST),
    "guest-card-driver": case("driver", "e1000", "vmxnet3", **GUEST),
    "guest-offloads": case("gro_or_lro", False, True, tso=True, **GUEST),
    "guest-steal": case("steal_share", 0.05, 0.001, uptime_s=86400.0, **GUEST),
    "guest-agent": case("guest_agent", False, True, virtualization="vmware", **GUEST),
    "guest-memory-balloon": case("balloon", True, False, **GUEST),
    "hypervisor-thin-disks": case("thin_disks", True, False),
    "hypervisor-latency": case("kernel_latency_ms", 3.0, 0.1),
    "hypervisor-device-latency": case("device_latency_ms", 30.0, 4.0),
    "hypervisor-adapters": case("adapters_per_guest", 1, 4),
    "hypervisor-power": case("power_policy", "Balanced", "High Performance"),
    # PostgreSQL
    "postgresql-fsync": case("fsync", "off", "on"),
    "postgresql-full-page-writes": case("full_page_writes", "off", "on"),
    "postgresql-synchronous-commit": case("synchronous_commit", "off", "on"),
    "postgresql-checksums": case("data_checksums", "off", "on"),
    "postgresql-checksum-failures": case("checksum_failures", 3.0, 0.0),
    "postgresql-checkpoint-target": case("checkpoint_completion_target", 0.5, 0.9),
    "postgresql-checkpoints-requested": case("checkpoints_requested_share", 0.6, 0.05, checkpoints=100),
    "postgresql-max-wal-size": case("max_wal_size_bytes", GIB, 8 * GIB, **CACHE),
    "postgresql-checkpoint-timeout": case("checkpoint_timeout_s", 30.0, 900.0),
    "postgresql-write-pressure": case(
        "max_wal_size_bytes", 64 * GIB, 4 * GIB,
        checkpoint_timeout_s=300.0, checkpoint_completion_target=0.9, measured_write_bytes_per_s=200e6,
    ),
    "postgresql-shared-buffers-small": case("shared_buffers_bytes", 128 * MIB, 25 * GIB, **MEMORY),
    "postgresql-shared-buffers-large": case("shared_buffers_bytes", 60 * GIB, 25 * GIB, **MEMORY),
    "postgresql-huge-pages": case("huge_pages", "off", "try", **CACHE),
    "postgresql-random-page-cost": case("random_page_cost", 4.0, 1.2, measured_random_cost=1.3),
    "postgresql-random-page-cost-flash": case("random_page_cost", 4.0, 1.1, **FLASH),
    "postgresql-io-concurrency": case("effective_io_concurrency", 1, 200, **FLASH),
    "postgresql-track-io-timing": case("track_io_timing", "off", "on"),
    "postgresql-track-wal-io-timing": case("track_wal_io_timing", "off", "on"),
    "postgresql-autovacuum": case("autovacuum", "off", "on"),
    "postgresql-log-statement": case("log_statement", "all", "ddl"),
    "postgresql-wal-compression": case("wal_compression", "off", "lz4", **CACHE),
    "postgresql-archive": case("archive_mode", "off", "on", standbys=0.0),
    "postgresql-temp-spills": case("temp_bytes_per_h", 50.0 * GIB, 0.0, stats_age_s=1e6),
    "postgresql-archive-failing": case("archive_failing", 1.0, 0.0, archive_mode="on"),
    "postgresql-slots": case("inactive_slots", ["old"], [], max_slot_wal_keep_size=-1),
    # MariaDB and MySQL
    "mariadb-flush-log": case("innodb_flush_log_at_trx_commit", 2, 1),
    "mariadb-sync-binlog": case("sync_binlog", 0, 1, **BINLOG),
    "mariadb-doublewrite": case("innodb_doublewrite", "DETECT_ONLY", "ON"),
    "mariadb-checksum": case("innodb_checksum_algorithm", "none", "full_crc32"),
    "mariadb-binlog-checksum": case("binlog_checksum", "NONE", "CRC32", **BINLOG),
    "mariadb-flush-method": case("innodb_flush_method", "fsync", "O_DIRECT"),
    "mariadb-flush-neighbours": case("innodb_flush_neighbors", 1, 0, **FLASH),
    "mariadb-io-capacity": case("innodb_io_capacity", 200, 2000, measured_iops=50_000.0),
    "mariadb-io-capacity-above": case("innodb_io_capacity", 10_000, 200, measured_iops=500.0),
    "mariadb-redo-capacity": case("redo_bytes", 96 * MIB, 4 * GIB, innodb_buffer_pool_size=16 * GIB),
    "mariadb-log-waits": case("log_waits", 1000.0, 0.0, log_writes=100_000.0),
    "mariadb-buffer-pool-large": case("innodb_buffer_pool_size", 95 * GIB, 70 * GIB, **MEMORY),
    "mariadb-buffer-pool-misses": case(
        "read_efficiency", 0.7, 0.99, innodb_buffer_pool_size=GIB, read_requests=1e7, **MEMORY
    ),
    "mariadb-file-per-table": case("innodb_file_per_table", "OFF", "ON"),
    "mariadb-autoextend": case("innodb_autoextend_increment", 1, 64),
    "mariadb-open-tables": case("opened_tables_per_s", 50.0, 0.1, table_open_cache=400),
    "mariadb-binlog": case("log_bin", "OFF", "ON"),
    # SQL Server
    "mssql-growth-percent": case("percent_growth_files", ["shop/shop"], []),
    "mssql-growth-small": case("small_growth_files", ["shop/shop_log"], []),
    "mssql-tempdb-size": case("tempdb_bytes", GIB, 20 * GIB, user_bytes=100 * GIB, **ANALYSIS),
    "mssql-tempdb-growth": case("tempdb_growths", [("tempdev", 8 * GIB, MIB)], [("tempdev", 8 * GIB, 256 * MIB)]),
    "mssql-tempdb-files": case("tempdb_files", 1, 8, cpu_count=16),
    "mssql-tempdb-equal": case("tempdb_sizes", [GIB, 8 * GIB], [8 * GIB, 8 * GIB]),
    "mssql-tempdb-recovery": case("tempdb_recovery", "FULL", "SIMPLE"),
    "mssql-log-recovery": case("simple_databases", ["shop"], []),
    "mssql-log-backups": case("unbacked_logs", ["shop"], []),
    "mssql-backups": case("unbacked_databases", ["a", "b", "c", "d", "e", "f"], []),
    "mssql-vlfs": case("vlf_counts", [("shop", 4000)], [("shop", 40)]),
    "mssql-log-larger": case("logs_larger", ["shop"], []),
    "mssql-max-memory": case("max_server_memory_bytes", 2147483647 * MIB, 90 * GIB, **MEMORY),
    "mssql-max-memory-columnstore": case(
        "max_server_memory_bytes", 92 * GIB, 80 * GIB, columnstore_indexes=2, **MEMORY
    ),
    "mssql-auto-shrink": case("auto_shrink_databases", ["shop"], []),
    "mssql-page-verify": case("unverified_databases", ["shop"], []),
    "mssql-suspect-pages": case("suspect_pages", 2, 0),
    "mssql-instant-initialisation": case("instant_file_initialization", "N", "Y"),
    "mssql-system-drive": case("system_drive_files", ["shop/shop"], []),
    "mssql-log-apart": case("shared_drives", ["shop"], []),
    "mssql-tempdb-apart": case("beside_tempdb", ["shop"], []),
    "mssql-tempdb-log-apart": case("tempdb_shared_drives", ["T:\\"], []),
    "mssql-presized": case("full_files", ["shop/shop"], []),
    "mssql-default-filegroup": case("primary_default_databases", ["shop"], []),
    "mssql-contiguous-extents": case("startup_parameters", ["-lC:\\m.ldf"], ["-lC:\\m.ldf", "-E"], **ANALYSIS),
    "mssql-even-growth": case("uneven_filegroups", ["shop/FACTS"], [], **ANALYSIS),
    "mssql-checkdb": case("unproven_databases", ["shop"], []),
    "mssql-backup-compression": case("backup_compression", 0, 1),
    "mssql-backup-beside-data": case("backups_beside", ["shop"], []),
    "mssql-indirect-checkpoint": case("automatic_checkpoints", ["shop"], []),
    "mssql-lock-pages": case("memory_model", "CONVENTIONAL", "LOCK_PAGES", host_platform="Windows"),
    "mssql-read-latency": case("slow_read_files", ["shop file 1"], []),
    "mssql-write-latency": case("slow_write_files", ["shop file 2"], []),
    # Arrays
    "array-fill": case("fill", 0.9, 0.7),
    "array-free-space": case("free_bytes", 0.01 * TB, 2 * TB, pool_bytes=10 * TB, members=1),
    "array-spares": case("spares", 0, 2),
    "array-raid6-large": case("raid", "50", "6", disk_bytes=4 * TB, disk_rpm=7200),
    "array-raid0": case("raid", "0", "10"),
    "array-state": case("state", "degraded", "healthy"),
    "array-path-policy": case("path_policy", "fixed", "round-robin", paths=2),
    "array-paths": case("paths", 1, 2),
    "array-queue-depth": case("initiator_limit", "8", "none"),
    "array-write-cache": case("write_back", False, True, disk_rpm=7200),
    "array-raid-role": case("raid", "50", "10", role="log"),
    "array-max-transfer": case("max_transfer_bytes", 65536, 262144),
    "md-mismatch": case("mismatch_count", 128, 0, is_md=True, raid="6"),
    "md-bitmap": case("bitmap", "none", "+8", is_md=True, raid="1"),
}  # fmt: skip
