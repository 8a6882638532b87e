//! Plan of an array with flash in its hosts, in base units.

use serde::{Deserialize, Serialize};

use crate::{
    ArrayError, DiskPlan, VolumePlan,
    plan::limits::{check, rate, time},
};

/// Hosts with flash, data nodes with disks behind them, and volumes that are dealt out to the hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFlashPlan {
    /// Seed of spindle phases and of where containers lie.
    pub seed: u64,
    pub volumes: Vec<VolumePlan>,
    pub host: FlashHostPlan,
    pub node: DataNodePlan,
    pub log: LogPlan,
    /// Time of a message and its answer between host and data node, or between hosts, beyond the modelled stages.
    pub network_ns: u64,
}

/// Equal hosts, each with memory, flash and processors for the array's software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashHostPlan {
    pub count: u32,
    /// Cores that the array's software may use.
    pub cores: u32,
    pub cpu_per_io_ns: u64,
    /// Bytes that a core fingerprints and compresses.
    pub cpu_bytes_per_s: f64,
    /// Most that a host reads, wherever it comes from.
    pub read_bytes_per_s: f64,
    /// Memory that keeps read and written data, and the time of a read from it.
    pub memory_bytes: u64,
    pub memory_ns: u64,
    pub flash_bytes: u64,
    /// Units of flash that work at the same time.
    pub flash_channels: u32,
    pub flash_page_bytes: u64,
    pub flash_read_ns: u64,
    pub flash_program_ns: u64,
    pub network_bytes_per_s: f64,
}

/// Equal data nodes whose disks are one pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataNodePlan {
    pub count: u32,
    pub disks: u32,
    pub disk: DiskPlan,
    pub cores: u32,
    pub cpu_per_io_ns: u64,
    /// Most that a node takes from hosts, before reduction.
    pub write_bytes_per_s: f64,
    /// Memory that survives a power cut, mirrored, from which writes are acknowledged.
    pub nvram_bytes: u64,
    pub nvram_ns: u64,
    pub network_bytes_per_s: f64,
    /// Containers that a node writes or cleans at the same time.
    pub containers_under_way: u32,
    /// Time by which a read that a host waits for is preferred when a disk chooses.
    pub read_preference_ns: u64,
}

/// How blocks lie in the pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPlan {
    /// Data of a container; its pieces lie on disks of their own.
    pub container_bytes: u64,
    pub data_pieces: u32,
    pub parity_pieces: u32,
    /// How many times smaller blocks are once duplicates are left out, and again once they are compressed.
    pub deduplication: f64,
    pub compression: f64,
    /// Stored bytes that the pool holds when reclamation begins, parity taken off.
    pub room_bytes: u64,
    /// Whether the pool is as full as that: containers are cleaned to make room.
    pub reclaims: bool,
    /// Snapshots of the chain, and the share of all blocks that is written from one to the next.
    pub snapshots: u32,
    pub snapshot_change: f64,
    /// Bytes that a snapshot keeps of each block written since the snapshot before.
    pub snapshot_entry_bytes: u64,
}

pub(crate) const HOSTS_MAX: u32 = 128;
pub(crate) const NODES_MAX: u32 = 10;
/// Beyond this share of the room nothing is won by cleaning.
pub(crate) const LIVE_MOST: f64 = 0.95;
const VOLUMES_MAX: usize = 4096;
/// Blocks that are fingerprinted.
pub(crate) const BLOCK_BYTES: u64 = 4096;

impl HostFlashPlan {
    /// Text of all parameters that decide the contents of caches after the same accesses: arrays with equal texts may
    /// share warm caches.
    pub fn warmth(&self) -> String {
        let FlashHostPlan { count, memory_bytes, flash_bytes, .. } = &self.host;
        format!("{:?}", (self.seed, &self.volumes, count, memory_bytes, flash_bytes, &self.log))
    }

    /// How many times smaller blocks are in the pool and in flash.
    pub(crate) fn reduction(&self) -> f64 {
        self.log.deduplication * self.log.compression
    }

    pub(crate) fn volume_bytes(&self) -> u64 {
        self.volumes.iter().map(|volume| volume.bytes).sum()
    }

    /// Share of the room that the volumes take.
    pub(crate) fn live_share(&self) -> f64 {
        self.volume_bytes() as f64 / self.reduction() / self.log.room_bytes as f64
    }

    /// Refuses impossible parameters.
    ///
    /// # Errors
    /// The first parameter that is impossible.
    pub fn validate(&self) -> Result<(), ArrayError> {
        check((1..=VOLUMES_MAX).contains(&self.volumes.len()), "volumes", || {
            format!("{} is outside 1 to {VOLUMES_MAX}", self.volumes.len())
        })?;
        check(
            self.volumes.iter().all(|volume| (BLOCK_BYTES..=1 << 50).contains(&volume.bytes)),
            "volume_size",
            || "is outside 4 KiB to 1 PiB".into(),
        )?;
        time(self.network_ns, "network.latency")?;
        self.host.validate()?;
        self.node.validate()?;
        self.log.validate()?;
        let (disks, pieces) = (self.node.count * self.node.disks, self.log.data_pieces + self.log.parity_pieces);
        check(disks >= pieces, "disks.count", || format!("{disks} disks do not carry containers of {pieces} pieces"))?;
        let live = self.live_share();
        let held = f64::from(self.log.snapshots) * self.log.snapshot_change.min(1.0);
        let most = live * (1.0 + held);
        if most > LIVE_MOST {
            return Err(ArrayError::TooLarge(format!(
                "reclamation is impossible: volumes{} take {:.0} % of the room that it works in, and nothing is won \
                 above {:.0} %; give smaller volumes, fewer snapshots or more nodes",
                if held > 0.0 { " and snapshots" } else { "" },
                most * 100.0,
                LIVE_MOST * 100.0
            )));
        }
        Ok(())
    }
}

impl FlashHostPlan {
    fn validate(&self) -> Result<(), ArrayError> {
        check((1..=HOSTS_MAX).contains(&self.count), "hosts", || {
            format!("{} is outside 1 to {HOSTS_MAX}", self.count)
        })?;
        check((1..=1024).contains(&self.cores), "host.cores", || format!("{} is outside 1 to 1024", self.cores))?;
        time(self.cpu_per_io_ns, "host.cpu_per_io")?;
        rate(self.cpu_bytes_per_s, "host.cpu_rate")?;
        rate(self.read_bytes_per_s, "host.read_rate")?;
        rate(self.network_bytes_per_s, "host.network_rate")?;
        check(self.memory_bytes <= 1 << 50, "host.memory", || "is above 1 PiB".into())?;
        time(self.memory_ns, "host.memory_time")?;
        check((1 << 20..=1 << 50).contains(&self.flash_bytes), "host.flash", || {
            format!("{} bytes is outside 1 MiB to 1 PiB", self.flash_bytes)
        })?;
        check((1..=4096).contains(&self.flash_channels), "host.flash_channels", || {
            format!("{} is outside 1 to 4096", self.flash_channels)
        })?;
        check((512..=1 << 24).contains(&self.flash_page_bytes), "host.flash_page", || {
            format!("{} bytes is outside 512 bytes to 16 MiB", self.flash_page_bytes)
        })?;
        time(self.flash_read_ns, "host.flash_read_time")?;
        time(self.flash_program_ns, "host.flash_program_time")
    }
}

impl DataNodePlan {
    fn validate(&self) -> Result<(), ArrayError> {
        check((1..=NODES_MAX).contains(&self.count), "nodes", || {
            format!("{} is outside 1 to {NODES_MAX}", self.count)
        })?;
        check((1..=1024).contains(&self.disks), "disks.count", || format!("{} is outside 1 to 1024", self.disks))?;
        check((1..=1024).contains(&self.cores), "node.cores", || format!("{} is outside 1 to 1024", self.cores))?;
        time(self.cpu_per_io_ns, "node.cpu_per_io")?;
        rate(self.write_bytes_per_s, "node.write_rate")?;
        rate(self.network_bytes_per_s, "node.network_rate")?;
        check((1 << 20..=1 << 42).contains(&self.nvram_bytes), "node.nvram", || {
            format!("{} bytes is outside 1 MiB to 4 TiB", self.nvram_bytes)
        })?;
        time(self.nvram_ns, "node.nvram_time")?;
        time(self.read_preference_ns, "node.read_preference")?;
        check((1..=1024).contains(&self.containers_under_way), "node.containers_under_way", || {
            format!("{} is outside 1 to 1024", self.containers_under_way)
        })?;
        self.disk.validate()
    }
}

impl LogPlan {
    pub(crate) fn piece_bytes(&self) -> u64 {
        self.container_bytes / u64::from(self.data_pieces)
    }

    fn validate(&self) -> Result<(), ArrayError> {
        check((1..=64).contains(&self.data_pieces) && self.parity_pieces <= 16, "log.data_pieces", || {
            format!("{}+{} pieces are outside 1+0 to 64+16", self.data_pieces, self.parity_pieces)
        })?;
        let pieces = u64::from(self.data_pieces);
        let fits = (1 << 16..=1 << 30).contains(&self.container_bytes)
            && self.container_bytes.is_multiple_of(pieces * BLOCK_BYTES);
        check(fits, "log.container", || {
            format!("{} bytes is no container of {pieces} pieces of blocks", self.container_bytes)
        })?;
        for (name, ratio) in [("deduplication", self.deduplication), ("compression", self.compression)] {
            check((1.0..=100.0).contains(&ratio), &format!("log.{name}"), || format!("{ratio} is outside 1 to 100"))?;
        }
        check(self.room_bytes >= self.container_bytes, "log.room", || "is less than a container".into())?;
        check(self.snapshots <= 4096, "snapshots", || format!("{} is above 4096", self.snapshots))?;
        check(self.snapshot_change > 0.0 && self.snapshot_change <= 1.0, "snapshot_change", || {
            format!("{} is outside 0 to 1", self.snapshot_change)
        })?;
        check(self.snapshot_entry_bytes <= BLOCK_BYTES, "log.snapshot_entry", || {
            format!("{} bytes is more than a block", self.snapshot_entry_bytes)
        })
    }
}
