//! What an array is made of: every parameter of the model in base units.

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
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DiskPlan {
    Mechanical(MechanicalPlan),
    SolidState(SolidStatePlan),
}

impl DiskPlan {
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Self::Mechanical(disk) => disk.capacity_bytes,
            Self::SolidState(disk) => disk.capacity_bytes,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ArrayError> {
        match self {
            Self::Mechanical(disk) => disk.validate(),
            Self::SolidState(disk) => disk.validate(),
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

/// A disk of flash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolidStatePlan {
    pub capacity_bytes: u64,
    /// Units of flash that work at the same time.
    pub channels: u32,
    /// What one read or program moves.
    pub page_bytes: u64,
    pub read_ns: u64,
    pub program_ns: u64,
    pub erase_ns: u64,
    pub pages_per_block: u32,
    /// Flash beyond the capacity, as a share of the capacity.
    pub over_provisioning: f64,
    pub command_overhead_ns: u64,
    pub interface_bytes_per_s: f64,
    /// Whether a write is acknowledged from memory that survives a power cut, before it is programmed.
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

/// What a write of part of a stripe reads first.
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
    /// Over what they replace.
    InPlace,
    /// To free blocks, `run_blocks` of them in a row on a disk.
    WriteAnywhere {
        block_bytes: u64,
        run_blocks: u32,
        /// Whether blocks that a sequential read found scattered are written again in one piece.
        read_realloc: bool,
        /// What keeps space, and how it is won back.
        #[serde(default)]
        space: SpacePlan,
    },
}

/// Snapshots, and the reclamation of what they and overwriting leave behind.
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
    /// The lost disk is being rebuilt onto a spare with so many chunks under way.
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
    /// What an I/O takes beyond everything else that is modelled: initiator, network, target stack, both ways.
    pub latency_ns: u64,
    /// The initiator splits larger I/Os into pieces of this size; 0: it does not.
    pub max_transfer_bytes: u64,
    /// What is lost while the model runs.
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

/// What is lost, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    pub lost: Lost,
    /// Since the model was made.
    pub at_ns: u64,
    /// From the loss of a controller until another serves its ports.
    pub failover_ns: u64,
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

const DISKS_MAX: u32 = 4096;
const VOLUMES_MAX: usize = 4096;
/// Below this a disk or link is no disk or link, and times would not fit 64 bits.
const RATE_MIN: f64 = 1e3;
/// Nothing that an array does once takes longer than this.
const TIME_MAX_NS: u64 = 1_000_000_000;
const VOLUME_MAX: u64 = 1 << 50;
/// Paths of all hosts to all members.
const PATHS_MAX: u64 = 1 << 20;
const PORTS_MAX: u32 = 64;
/// Nobody waits longer for a path or a controller.
const WAIT_MAX_NS: u64 = 600 * TIME_MAX_NS;

impl ArrayPlan {
    /// All that decides what caches hold after the same accesses: arrays that agree in it may share warm caches.
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

    /// Refuses what no array can be.
    ///
    /// # Errors
    /// The first parameter that is impossible.
    pub fn validate(&self) -> Result<(), ArrayError> {
        let disks = |pool: &PoolPlan| u64::from(pool.members) * u64::from(pool.member.active_disks());
        let all = self.pools.iter().map(disks).sum::<u64>();
        let members = self.pools.iter().map(|pool| u64::from(pool.members)).sum::<u64>();
        let all_have = !self.pools.is_empty() && self.pools.iter().all(|pool| pool.members >= 1);
        check(all_have && all <= u64::from(DISKS_MAX), "members", || {
            format!("{members} members with {all} active disks; there can be {DISKS_MAX} disks")
        })?;
        let volumes = self.volumes().count();
        check((1..=VOLUMES_MAX).contains(&volumes), "volumes", || format!("{volumes} is outside 1 to {VOLUMES_MAX}"))?;
        check(self.page_bytes >= 1 << 16 && self.page_bytes <= 1 << 40, "group.page", || {
            format!("{} bytes is outside 64 KiB to 1 TiB", self.page_bytes)
        })?;
        check(self.volumes().all(|volume| (1..=VOLUME_MAX).contains(&volume.bytes)), "volume_size", || {
            "is outside 1 byte to 1 PiB".into()
        })?;
        self.links.validate()?;
        for PoolPlan { member, .. } in &self.pools {
            check(self.page_bytes >= member.raid.chunk_bytes, "group.page", || {
                format!("{} bytes is below the chunk of {} bytes", self.page_bytes, member.raid.chunk_bytes)
            })?;
            check(member.controller == *self.controller(), "controller_ports", || {
                "members differ in their controllers".into()
            })?;
            member.validate()?;
        }
        let paths = self.links.paths(self.controller()) * u64::from(self.links.hosts.count) * members;
        check(paths <= PATHS_MAX, "hosts", || format!("{paths} paths in all; there can be {PATHS_MAX}"))
    }

    /// The controllers of every member.
    ///
    /// # Panics
    /// There is no pool, which [`Self::validate`] refuses.
    pub(crate) fn controller(&self) -> &ControllerPlan {
        &self.pools[0].member.controller
    }
}

impl MemberPlan {
    /// Disks that hold data.
    pub fn active_disks(&self) -> u32 {
        self.disks.saturating_sub(self.spares)
    }

    fn validate(&self) -> Result<(), ArrayError> {
        check(self.active_disks() >= 1, "disks.spares", || {
            format!("{} of {} disks are spares", self.spares, self.disks)
        })?;
        let raid = &self.raid;
        check(
            raid.misalign_bytes == 0 || raid.chunk_bytes.is_multiple_of(raid.misalign_bytes),
            "raid.misalignment",
            || format!("{} bytes does not divide the chunk of {} bytes", raid.misalign_bytes, raid.chunk_bytes),
        )?;
        let lost = self.state != StatePlan::Healthy;
        check(!lost || raid.policy != RaidPolicy::Raid0, "state", || "RAID 0 does not outlive a lost disk".into())?;
        if let StatePlan::Rebuilding { depth } = self.state {
            check((1..=1024).contains(&depth), "rebuild.depth", || format!("{depth} is outside 1 to 1024"))?;
        }
        rate(self.controller.cpu_bytes_per_s, "controller.cpu_rate")?;
        time(self.controller.cpu_per_io_ns, "controller.cpu_per_io")?;
        check((1..=1024).contains(&self.controller.cores), "controller.cores", || {
            format!("{} is outside 1 to 1024", self.controller.cores)
        })?;
        let ports = self.controller.all_ports();
        check((1..=PORTS_MAX).contains(&ports), "controller_ports", || {
            format!("a member of {ports} ports is outside 1 to {PORTS_MAX}")
        })?;
        self.cache.validate()?;
        self.disk.validate()
    }
}

impl LinkPlan {
    /// Paths between a host and a member.
    pub(crate) fn paths(&self, controller: &ControllerPlan) -> u64 {
        let (hosts, members) = (u64::from(self.hosts.ports), u64::from(controller.all_ports()));
        let (mut one, mut other) = (hosts, members);
        while other > 0 {
            (one, other) = (other, one % other);
        }
        hosts * members / one.max(1)
    }

    fn validate(&self) -> Result<(), ArrayError> {
        let hosts = &self.hosts;
        rate(self.port_bytes_per_s, "links.port_rate")?;
        rate(hosts.port_bytes_per_s, "host_port_rate")?;
        time(self.latency_ns, "links.latency")?;
        check(self.max_transfer_bytes == 0 || self.max_transfer_bytes >= 512, "links.max_transfer", || {
            format!("{} bytes is below 512", self.max_transfer_bytes)
        })?;
        check((1..=PORTS_MAX).contains(&hosts.ports), "host_ports", || {
            format!("{} is outside 1 to {PORTS_MAX}", hosts.ports)
        })?;
        check((1..=1024).contains(&hosts.count), "hosts", || format!("{} is outside 1 to 1024", hosts.count))?;
        check((0.001..=1.0).contains(&hosts.first_port_share), "slow_path", || {
            format!("{} is outside 0.001 to 1", hosts.first_port_share)
        })?;
        check((0.0..=0.5).contains(&hosts.first_port_loss), "packet_loss", || {
            format!("{} is outside 0 to 0.5", hosts.first_port_loss)
        })?;
        let waits = (hosts.path_timeout_ns, self.fault.map_or(0, |fault| fault.failover_ns));
        check(waits.0.max(waits.1) <= WAIT_MAX_NS, "path_timeout", || "is above 600 s".into())?;
        check(self.fault.is_none_or(|fault| fault.at_ns <= 1 << 62), "fault", || "is never".into())?;
        let lost = self.fault.map(|fault| fault.lost);
        check(lost != Some(Lost::HostPort) || hosts.ports > 1, "fault", || "the host's only port is lost".into())
    }
}

impl CachePlan {
    fn validate(&self) -> Result<(), ArrayError> {
        let (low, high, most) = (self.dirty_low, self.dirty_high, self.dirty_most);
        check((0.0..=high).contains(&low) && high <= most && most <= 1.0, "cache.dirty_low", || {
            format!("dirty levels {low}, {high}, {most} do not rise from 0 to 1")
        })?;
        check(self.bytes >= 1 << 20 && self.bytes <= 1 << 40, "cache.size", || {
            format!("{} bytes is outside 1 MiB to 1 TiB", self.bytes)
        })?;
        check(self.prefetch_bytes <= self.bytes.min(1 << 30), "cache.prefetch", || {
            format!("{} bytes is beyond the cache or 1 GiB", self.prefetch_bytes)
        })?;
        check((1..=1024).contains(&self.destage_depth), "cache.destage_depth", || {
            format!("{} is outside 1 to 1024", self.destage_depth)
        })?;
        time(self.read_preference_ns, "cache.read_preference")
    }
}

impl MechanicalPlan {
    fn validate(&self) -> Result<(), ArrayError> {
        rate(self.rate_inner_bytes_per_s, "disk.rate_inner")?;
        rate(self.interface_bytes_per_s, "disk.interface_rate")?;
        check(self.rate_outer_bytes_per_s >= self.rate_inner_bytes_per_s, "disk.rate_outer", || {
            format!("{} is below the rate of the inner tracks", self.rate_outer_bytes_per_s)
        })?;
        check((1_000_000..=TIME_MAX_NS).contains(&self.revolution_ns), "disk.revolution", || {
            format!("{} ns is outside 1 ms to 1 s", self.revolution_ns)
        })?;
        let track_bytes = self.rate_inner_bytes_per_s * self.revolution_ns as f64 / 1e9;
        let most = f64::from(u32::MAX);
        let outer = self.rate_outer_bytes_per_s * self.revolution_ns as f64 / 1e9;
        check(track_bytes >= 512.0 && outer <= most, "disk.rate_inner", || {
            format!("tracks of {track_bytes:.0} to {outer:.0} bytes are none")
        })?;
        let (track, average, full) = (self.seek_track_ns, self.seek_average_ns, self.seek_full_ns);
        check(track <= average && average <= full && full <= TIME_MAX_NS, "disk.seek_average", || {
            format!("seeks of {track}, {average} and {full} ns do not rise")
        })?;
        // Where a + b sqrt(d) + c d with these three values rises from the first distance to the last: 0 <= b <= 2 (full - track).
        let (above, range) = (average - track, full - track);
        check(3 * above >= range && 15 * above <= 11 * range, "disk.seek_average", || {
            format!("{average} ns is no mean of seeks from {track} to {full} ns: those are 5/15 to 11/15 of the way")
        })?;
        time(self.write_settle_ns, "disk.write_settle")?;
        time(self.command_overhead_ns, "disk.command_overhead")?;
        check(self.read_ahead_bytes <= 1 << 30, "disk.read_ahead", || {
            format!("{} bytes is beyond 1 GiB", self.read_ahead_bytes)
        })?;
        share(self.reorder_weight, "disk.reorder_weight")?;
        share(self.age_credit, "disk.age_credit")?;
        capacity(self.capacity_bytes)
    }
}

impl SolidStatePlan {
    fn validate(&self) -> Result<(), ArrayError> {
        rate(self.interface_bytes_per_s, "disk.interface_rate")?;
        check((1..=4096).contains(&self.channels), "disk.channels", || {
            format!("{} is outside 1 to 4096", self.channels)
        })?;
        check((1..=8192).contains(&self.queue_depth), "disk.queue_depth", || {
            format!("{} is outside 1 to 8192", self.queue_depth)
        })?;
        check((512..=1 << 24).contains(&self.page_bytes), "disk.page", || {
            format!("{} bytes is outside 512 bytes to 16 MiB", self.page_bytes)
        })?;
        check(self.over_provisioning >= 0.01 && self.over_provisioning <= 10.0, "disk.over_provisioning", || {
            format!("{} is outside 0.01 to 10", self.over_provisioning)
        })?;
        check(self.write_buffer_bytes <= 1 << 40, "disk.write_buffer", || {
            format!("{} bytes is beyond 1 TiB", self.write_buffer_bytes)
        })?;
        time(self.read_ns, "disk.read_time")?;
        time(self.program_ns, "disk.program_time")?;
        time(self.erase_ns, "disk.erase_time")?;
        time(self.command_overhead_ns, "disk.command_overhead")?;
        capacity(self.capacity_bytes)
    }
}

pub(crate) fn check(fits: bool, parameter: &str, message: impl FnOnce() -> String) -> Result<(), ArrayError> {
    if fits { Ok(()) } else { Err(ArrayError::invalid(parameter, message())) }
}

pub(crate) fn rate(bytes_per_s: f64, parameter: &str) -> Result<(), ArrayError> {
    check(bytes_per_s.is_finite() && bytes_per_s >= RATE_MIN, parameter, || {
        format!("{bytes_per_s} bytes per second is no rate")
    })
}

pub(crate) fn time(ns: u64, parameter: &str) -> Result<(), ArrayError> {
    check(ns <= TIME_MAX_NS, parameter, || format!("{ns} ns is above 1 s"))
}

fn share(value: f64, parameter: &str) -> Result<(), ArrayError> {
    check((0.0..=1.0).contains(&value), parameter, || format!("{value} is outside 0 to 1"))
}

fn capacity(bytes: u64) -> Result<(), ArrayError> {
    check((1 << 20..=1 << 50).contains(&bytes), "disk.capacity", || format!("{bytes} bytes is outside 1 MiB to 1 PiB"))
}
