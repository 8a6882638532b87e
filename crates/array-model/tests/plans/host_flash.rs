//! An array with flash in its hosts for tests.

use assay_array_model::{DataNodePlan, DiskPlan, FlashHostPlan, HostFlashPlan, LogPlan, MechanicalPlan, VolumePlan};

use super::{GIB, KIB, MIB, MS, mechanical};

/// Two hosts with two volumes of 256 MiB each, one node of twelve disks, and room for twice what is stored.
pub(crate) fn plan() -> HostFlashPlan {
    HostFlashPlan {
        seed: 1,
        volumes: (0..4).map(|number| VolumePlan { name: format!("v{number}"), bytes: 256 * MIB }).collect(),
        host: FlashHostPlan {
            count: 2,
            cores: 8,
            cpu_per_io_ns: 56_889,
            cpu_bytes_per_s: 1e9,
            read_bytes_per_s: 1.56e9,
            memory_bytes: 16 * MIB,
            memory_ns: 5_000,
            flash_bytes: GIB,
            flash_channels: 64,
            flash_page_bytes: 16 * KIB,
            flash_read_ns: 90_000,
            flash_program_ns: 600_000,
            network_bytes_per_s: 2.3e9,
        },
        node: DataNodePlan {
            count: 1,
            disks: 12,
            disk: DiskPlan::Mechanical(MechanicalPlan { capacity_bytes: 16 * GIB, ..mechanical() }),
            cores: 8,
            cpu_per_io_ns: 20_000,
            write_bytes_per_s: 1e9,
            nvram_bytes: 256 * MIB,
            nvram_ns: 20_000,
            network_bytes_per_s: 2.3e9,
            containers_under_way: 8,
            read_preference_ns: 20 * MS,
        },
        log: LogPlan {
            container_bytes: 8 * MIB,
            data_pieces: 8,
            parity_pieces: 2,
            deduplication: 1.25,
            compression: 1.6,
            room_bytes: GIB,
            reclaims: false,
            snapshots: 0,
            snapshot_change: 0.02,
            snapshot_entry_bytes: 64,
        },
        network_ns: 100_000,
    }
}
