//! Plan of an array: every parameter of the model in base units.

mod derived;
pub(crate) mod limits;
mod software;

pub use software::{RaidLog, SoftwarePlan};

use serde::{Deserialize, Serialize};

use crate::{ArrayError, RaidPolicy};

/// Members in pools, the volumes on them and the links to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayPlan {
    /// Seed of spindle phases and of where volumes begin.
    pub seed: u64,
    /// Volumes are spread over the members of their pool in pages of this size.
    pub page_bytes: u64,
    pub pools: Vec<PoolPlan>,
    pub links: LinkPlan,
}

/// Equal members, and the volumes on them. Members and volumes are numbered through all pools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolPlan {
    pub members: u32,
    pub member: MemberPlan,
    pub volumes: Vec<VolumePlan>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumePlan {
    pub name: String,
    pub bytes: u64,
}

/// One array: disks behind a controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    pub disks: u32,
    /// Disks that hold nothing until another one fails.
    pub spares: u32,
    pub disk: DiskPlan,
    pub raid: RaidPlan,
    pub controller: ControllerPlan,
    pub cache: CachePlan,
    pub layout: LayoutPlan,
    pub state: StatePlan,
    /// The last of the disks, where they are of another kind or age.
    #[serde(default)]
    pub others: Option<OthersPlan>,
    /// RAID in the host's software.
    #[serde(default)]
    pub software: Option<SoftwarePlan>,
    /// Most that a rebuild writes onto the spare; 0: as fast as it goes.
    #[serde(default)]
    pub rebuild_bytes_per_s: f64,
}

/// Disks of a member that are not like the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OthersPlan {
    pub count: u32,
    pub disk: DiskPlan,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DiskPlan {
    Mechanical(MechanicalPlan),
    SolidState(SolidStatePlan),
    Station(StationPlan),
}

impl DiskPlan {
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Self::Mechanical(disk) => disk.capacity_bytes,
            Self::SolidState(disk) => disk.capacity_bytes,
            Self::Station(disk) => disk.capacity_bytes,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ArrayError> {
        match self {
            Self::Mechanical(disk) => disk.validate(),
            Self::SolidState(disk) => disk.validate(),
            Self::Station(disk) => disk.validate(),
        }
    }
}

/// A disk with arms and platters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanicalPlan {
    pub capacity_bytes: u64,
    /// One turn of the platters.
    pub revolution_ns: u64,
    /// From one cylinder to the next.
    pub seek_track_ns: u64,
    /// Mean over random pairs of cylinders.
    pub seek_average_ns: u64,
    /// From the first cylinder to the last.
    pub seek_full_ns: u64,
    /// Added to the seek before a write.
    pub write_settle_ns: u64,
    pub rate_outer_bytes_per_s: f64,
    pub rate_inner_bytes_per_s: f64,
    /// Time of every command that is neither seek, rotation nor transfer.
    pub command_overhead_ns: u64,
    /// Commands the disk can choose among.
    pub queue_depth: u32,
    /// How much of the rotational wait the choice of the next command takes into account.
    pub reorder_weight: f64,
    /// Share of its waiting time by which a command is preferred.
    pub age_credit: f64,
    /// Most the disk reads on ahead into its own buffer after a read.
    pub read_ahead_bytes: u64,
    pub interface_bytes_per_s: f64,
}

/// A drive of flash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolidStatePlan {
    pub capacity_bytes: u64,
    pub flash: FlashPlan,
    pub reads: ReadsPlan,
    pub slc: SlcPlan,
    pub heat: HeatPlan,
    /// Bytes that have a place of their own: a smaller write reads and writes the rest again.
    pub unit_bytes: u64,
    /// Flash beyond the capacity, as a share of the capacity.
    pub over_provisioning: f64,
    /// Programs for tables of the drive, as a share of all other programs.
    pub metadata_share: f64,
    /// Share of the capacity, at its end, that was trimmed.
    pub trimmed_share: f64,
    pub age: FlashAge,
    pub command_overhead_ns: u64,
    /// Between the beginnings of two commands.
    pub command_ns: u64,
    pub interface_bytes_per_s: f64,
    pub queue_depth: u32,
    /// Memory from which writes are acknowledged, and whether it survives a power cut.
    pub write_buffer_bytes: u64,
    pub power_loss_protection: bool,
}

impl SolidStatePlan {
    /// Bytes that go to cells used with one bit before others do.
    pub(crate) fn slc_bytes(&self) -> u64 {
        self.slc.bytes + if self.age == FlashAge::Fresh { self.slc.empty_bytes } else { 0 }
    }
}

/// The flash of a drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashPlan {
    /// Dies, the planes of each, which read on their own, and the buses between dies and controller.
    pub dies: u32,
    pub planes: u32,
    pub channels: u32,
    pub channel_bytes_per_s: f64,
    /// Bytes that one read of a plane takes.
    pub page_bytes: u64,
    /// Bits of a cell: pages of a plane that are programmed at once.
    pub cell_bits: u32,
    pub pages_per_block: u32,
    pub read_ns: u64,
    /// All planes of a die, all bits of their cells.
    pub program_ns: u64,
    pub erase_ns: u64,
    /// Dies that power lets program at a time; 0: all.
    pub programming_dies: u32,
}

/// Earlier writes to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlashAge {
    /// Nothing.
    Fresh,
    /// All of it, once, in order.
    Written,
    /// All of it, at random, for as long as it takes until nothing changes any more.
    Steady,
}

/// Reads that come while their die programs or erases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsPlan {
    pub priority: ReadPriority,
    /// Time until a program or erase gives way to a read, and how many times one does.
    pub suspend_ns: u64,
    pub suspends: u32,
    /// Half of the suspensions take longer, in the mean by this.
    pub late_ns: u64,
    /// Time that a program or erase loses each time, the read not counted.
    pub resume_ns: u64,
}

/// Turn of a read on a die that programs or erases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadPriority {
    /// The read waits for everything that came before.
    InTurn,
    /// The read comes next.
    Next,
    /// The program or erase under way is suspended.
    Suspend,
}

/// Cells that are used with one bit each, which is quick, and filled up later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcPlan {
    /// How much they hold at any time, and how much more in a drive that is empty.
    pub bytes: u64,
    pub empty_bytes: u64,
    /// All planes of a die.
    pub program_ns: u64,
    /// Moved on when the drive is idle.
    pub fold_bytes_per_s: f64,
}

/// A drive that gets hot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeatPlan {
    /// Bytes moved faster than they are cooled until the drive slows down; 0: it never does.
    pub bytes: u64,
    pub cooling_bytes_per_s: f64,
    /// Share of the interface's rate that is left.
    pub throttled_share: f64,
}

/// A disk of unknown build: servers with a time for each I/O, and a queue in front of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationPlan {
    pub capacity_bytes: u64,
    /// Servers.
    pub channels: u32,
    pub read_ns: u64,
    /// After the acknowledgement of a write.
    pub program_ns: u64,
    pub command_overhead_ns: u64,
    pub interface_bytes_per_s: f64,
    /// Writes that are acknowledged before they are served.
    pub write_buffer_bytes: u64,
    pub queue_depth: u32,
}

/// How blocks lie on the disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaidPlan {
    pub policy: RaidPolicy,
    /// Disks of one parity set or, with RAID 10 and 0, of one stripe; divides the active disks.
    pub set_disks: u32,
    pub chunk_bytes: u64,
    pub partial_write: PartialWrite,
    /// Volumes begin at random multiples of this within a chunk; 0: chunks and volumes are aligned.
    pub misalign_bytes: u64,
}

/// Data that a write of part of a stripe reads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialWrite {
    /// The old data and the old parity.
    ReadModify,
    /// The data of the stripe that are not written.
    Reconstruct,
    /// Whichever takes fewer disk I/Os.
    Cheapest,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerPlan {
    /// Controllers that serve at the same time, each with its own cores and ports.
    pub count: u32,
    pub ports: u32,
    pub cpu_per_io_ns: u64,
    pub cpu_bytes_per_s: f64,
    pub cores: u32,
}

impl ControllerPlan {
    /// Ports of a member.
    pub fn all_ports(&self) -> u32 {
        self.count.saturating_mul(self.ports)
    }
}

/// The controller's memory for data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachePlan {
    pub bytes: u64,
    /// Whether writes are acknowledged from the cache; without a battery they are not.
    pub write_back: bool,
    /// Shares of the cache that are dirty when destaging begins, when it is at its fastest, and when writes have to wait.
    pub dirty_low: f64,
    pub dirty_high: f64,
    pub dirty_most: f64,
    /// Most destage writes under way per disk.
    pub destage_depth: u32,
    /// Time by which a read is preferred to a destage when a disk chooses.
    pub read_preference_ns: u64,
    /// Whether reads are kept at all.
    pub keep_reads: bool,
    /// Reads that follow each other before the controller reads ahead, and how far it does.
    pub sequential_after: u32,
    pub prefetch_bytes: u64,
    /// Whether the run begins with the dirty level at its working point instead of with an empty cache.
    pub starts_warm: bool,
}

/// Where writes go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LayoutPlan {
    /// Writes replace blocks in place.
    InPlace,
    /// To free blocks, `run_blocks` of them in a row on a disk.
    WriteAnywhere {
        block_bytes: u64,
        run_blocks: u32,
        /// Whether blocks that a sequential read found scattered are written again in one piece.
        read_realloc: bool,
        /// How many times smaller data are on the disks than hosts wrote them.
        #[serde(default = "unreduced")]
        reduction: f64,
        /// Snapshots and reclamation of space.
        #[serde(default)]
        space: SpacePlan,
    },
}

fn unreduced() -> f64 {
    1.0
}

/// Snapshots, and the reclamation of space that they and overwriting leave behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpacePlan {
    /// Snapshots of the chain, and the share of all blocks that is written from one to the next.
    pub snapshots: u32,
    pub snapshot_change: f64,
    /// Whether all free space has been written before, so that it has to be reclaimed.
    pub reclaims: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StatePlan {
    Healthy,
    /// One disk of the first set is lost and not replaced.
    Degraded,
    /// The lost disk is being rebuilt onto a spare, with `depth` chunks under way.
    Rebuilding {
        depth: u32,
    },
}

/// The paths between hosts and members.
///
/// Between a host and a member there are as many paths as make all pairs of ports equally busy in turn: the least common
/// multiple of their numbers of ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    pub hosts: HostPlan,
    pub policy: PathPolicy,
    /// Payload that one port of a member carries in each direction, protocol and framing taken off.
    pub port_bytes_per_s: f64,
    /// Bytes of every command beside its payload.
    pub overhead_bytes: u32,
    /// Time of an I/O beyond all modelled stages: initiator, network, target stack, both ways.
    pub latency_ns: u64,
    /// The initiator splits larger I/Os into pieces of this size; 0: it does not.
    pub max_transfer_bytes: u64,
    /// Loss of a port or controller while the model runs.
    pub fault: Option<FaultPlan>,
}

/// Hosts, each with its own ports; the volumes are dealt out to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    pub count: u32,
    pub ports: u32,
    /// Payload that one port carries in each direction.
    pub port_bytes_per_s: f64,
    /// Share of its rate that each host's first port reaches.
    pub first_port_share: f64,
    /// Share of packets that each host's first port drops, both ways.
    pub first_port_loss: f64,
    /// Most commands under way of one port; 0: any number.
    pub commands_most: u32,
    /// How long commands on a path without answer wait before they take another.
    pub path_timeout_ns: u64,
}

/// Loss of a port or controller, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    pub lost: Lost,
    /// Since the model was made.
    pub at_ns: u64,
    /// From the loss of a controller until another serves its ports.
    pub failover_ns: u64,
}

impl FaultPlan {
    /// The time of a fault that never comes.
    pub const NEVER_NS: u64 = 1 << 62;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// The first port of the first host.
    HostPort,
    /// The first controller of the first member. Another one takes its ports: one that was at work takes them onto its own, and
    /// where there is one only, its standby has as many. The write cache is mirrored, and survives.
    Controller,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPolicy {
    RoundRobin,
    LeastQueueDepth,
}

impl ArrayPlan {
    /// Text of all parameters that decide the contents of caches after the same accesses: arrays with equal texts may
    /// share warm caches.
    pub fn warmth(&self) -> String {
        let Self { seed, page_bytes, pools, links: _ } = self;
        let held = |PoolPlan { members, member, volumes }: &PoolPlan| {
            let MemberPlan { disks, spares, raid, cache, layout, .. } = member;
            let CachePlan { bytes, write_back, keep_reads, dirty_low, dirty_high, .. } = cache;
            let cache = (bytes, write_back, keep_reads, dirty_low, dirty_high);
            format!("{:?}", (members, disks, spares, raid, cache, layout, volumes))
        };
        format!("{:?}", (seed, page_bytes, pools.iter().map(held).collect::<Vec<_>>()))
    }

    /// Members of all pools.
    pub fn members(&self) -> u32 {
        self.pools.iter().map(|pool| pool.members).sum()
    }

    /// Volumes of all pools, in the order of their numbers.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumePlan> {
        self.pools.iter().flat_map(|pool| &pool.volumes)
    }

    /// The controllers of every member.
    ///
    /// # Panics
    /// There is no pool, which [`Self::validate`] refuses.
    pub(crate) fn controller(&self) -> &ControllerPlan {
        &self.pools[0].member.controller
    }
}
