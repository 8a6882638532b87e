//! Limits of plans: impossible parameters are refused by name.

use super::*;
use crate::ArrayError;

const DISKS_MAX: u32 = 4096;
const VOLUMES_MAX: usize = 4096;
/// Below this a disk or link is no disk or link, and times would not fit 64 bits.
const RATE_MIN: f64 = 1e3;
/// Nothing that an array does once takes longer than this.
const TIME_MAX_NS: u64 = 1_000_000_000;
pub(crate) const VOLUME_MAX: u64 = 1 << 50;
/// Paths of all hosts to all members.
const PATHS_MAX: u64 = 1 << 20;
const PORTS_MAX: u32 = 64;
/// Longest wait for a path or a controller.
const WAIT_MAX_NS: u64 = 600 * TIME_MAX_NS;

impl ArrayPlan {
    /// Refuses impossible parameters.
    ///
    /// # Errors
    /// The first parameter that is impossible.
    pub fn validate(&self) -> Result<(), ArrayError> {
        let disks = |pool: &PoolPlan| u64::from(pool.members) * u64::from(pool.member.serving_disks());
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
}

impl MemberPlan {
    /// Disks that hold data.
    pub fn active_disks(&self) -> u32 {
        self.disks.saturating_sub(self.spares)
    }

    pub(super) fn validate(&self) -> Result<(), ArrayError> {
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
        let rate = self.rebuild_bytes_per_s;
        check(rate == 0.0 || (rate.is_finite() && rate >= RATE_MIN), "rebuild.rate", || {
            format!("{rate} bytes per second")
        })?;
        if let Some(software) = &self.software {
            software.validate(self)?;
        }
        let reduction = self.layout.reduction();
        check((1.0..=100.0).contains(&reduction), "layout.reduction", || format!("{reduction} is outside 1 to 100"))?;
        if let Some(others) = &self.others {
            check(others.count < self.active_disks(), "mixed", || {
                format!("{} of {} disks leave none of the usual ones", others.count, self.active_disks())
            })?;
            others.disk.validate()?;
        }
        self.disk.validate()
    }
}

impl SoftwarePlan {
    pub(super) fn validate(&self, member: &MemberPlan) -> Result<(), ArrayError> {
        let policy = member.raid.policy;
        check(self.bitmap_bytes == 0 || self.bitmap_bytes >= 4096, "raid.bitmap", || {
            format!("{} bytes is below 4 KiB", self.bitmap_bytes)
        })?;
        check(self.bitmap_bytes == 0 || policy != RaidPolicy::Raid0, "raid.bitmap", || {
            "RAID 0 has nothing to synchronise".into()
        })?;
        check(self.log == RaidLog::None || policy.parity_disks() > 0, "raid.journal", || {
            format!("RAID {} has no parity", policy.name())
        })?;
        check(self.log != RaidLog::Ppl || policy.parity_disks() == 1, "raid.journal", || {
            format!("ppl is for one parity, and RAID {} has two", policy.name())
        })?;
        check(self.log == RaidLog::None || self.bitmap_bytes == 0, "raid.journal", || {
            "takes the place of the bitmap; give raid.bitmap=0B too".into()
        })?;
        let write_back = self.log == RaidLog::JournalWriteBack;
        check(member.cache.write_back == write_back, "cache.write_back", || {
            "software acknowledges writes from memory with raid.journal=write-back alone".into()
        })?;
        check(member.layout == LayoutPlan::InPlace, "layout.kind", || "software RAID writes in place".into())
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

    pub(super) fn validate(&self) -> Result<(), ArrayError> {
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
        check(self.fault.is_none_or(|fault| fault.at_ns <= FaultPlan::NEVER_NS), "fault", || "is never".into())?;
        let lost = self.fault.map(|fault| fault.lost);
        check(lost != Some(Lost::HostPort) || hosts.ports > 1, "fault", || "the host's only port is lost".into())
    }
}

impl CachePlan {
    pub(super) fn validate(&self) -> Result<(), ArrayError> {
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
    pub(super) fn validate(&self) -> Result<(), ArrayError> {
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
    pub(crate) fn validate(&self) -> Result<(), ArrayError> {
        rate(self.interface_bytes_per_s, "disk.interface_rate")?;
        self.flash.validate()?;
        within(self.queue_depth, 1..=8192, "disk.queue_depth")?;
        check((512..=1 << 24).contains(&self.unit_bytes), "disk.unit", || {
            format!("{} bytes is outside 512 bytes to 16 MiB", self.unit_bytes)
        })?;
        check(self.over_provisioning >= 0.01 && self.over_provisioning <= 10.0, "disk.over_provisioning", || {
            format!("{} is outside 0.01 to 10", self.over_provisioning)
        })?;
        share(self.metadata_share, "disk.metadata")?;
        check((0.0..=0.99).contains(&self.trimmed_share), "disk.trimmed", || {
            format!("{} is outside 0 to 0.99", self.trimmed_share)
        })?;
        buffer(self.write_buffer_bytes)?;
        time(self.command_ns, "disk.command_time")?;
        time(self.reads.suspend_ns, "disk.suspend_time")?;
        time(self.reads.late_ns, "disk.suspend_late")?;
        time(self.reads.resume_ns, "disk.resume_time")?;
        time(self.command_overhead_ns, "disk.command_overhead")?;
        time(self.slc.program_ns, "disk.slc_program_time")?;
        check(self.slc.bytes.max(self.slc.empty_bytes) <= 1 << 50, "disk.slc", || "is beyond 1 PiB".into())?;
        check(self.slc.fold_bytes_per_s.is_finite() && self.slc.fold_bytes_per_s >= 0.0, "disk.slc_fold_rate", || {
            format!("{} bytes per second is no rate", self.slc.fold_bytes_per_s)
        })?;
        let heat = &self.heat;
        check(heat.cooling_bytes_per_s.is_finite() && heat.cooling_bytes_per_s >= 0.0, "disk.cooling_rate", || {
            format!("{} bytes per second is no rate", heat.cooling_bytes_per_s)
        })?;
        share(heat.throttled_share, "disk.throttled")?;
        capacity(self.capacity_bytes)
    }
}

impl FlashPlan {
    fn validate(&self) -> Result<(), ArrayError> {
        rate(self.channel_bytes_per_s, "disk.channel_rate")?;
        within(self.dies, 1..=4096, "disk.dies")?;
        within(self.planes, 1..=16, "disk.planes")?;
        within(self.channels, 1..=4096, "disk.channels")?;
        within(self.cell_bits, 1..=5, "disk.cell_bits")?;
        within(self.programming_dies, 0..=4096, "disk.programming_dies")?;
        check((512..=1 << 24).contains(&self.page_bytes), "disk.page", || {
            format!("{} bytes is outside 512 bytes to 16 MiB", self.page_bytes)
        })?;
        time(self.read_ns, "disk.read_time")?;
        time(self.program_ns, "disk.program_time")?;
        time(self.erase_ns, "disk.erase_time")
    }
}

impl StationPlan {
    pub(super) fn validate(&self) -> Result<(), ArrayError> {
        rate(self.interface_bytes_per_s, "disk.interface_rate")?;
        within(self.channels, 1..=4096, "disk.channels")?;
        within(self.queue_depth, 1..=8192, "disk.queue_depth")?;
        buffer(self.write_buffer_bytes)?;
        time(self.read_ns, "disk.read_time")?;
        time(self.program_ns, "disk.program_time")?;
        time(self.command_overhead_ns, "disk.command_overhead")?;
        capacity(self.capacity_bytes)
    }
}

fn within(count: u32, range: std::ops::RangeInclusive<u32>, parameter: &str) -> Result<(), ArrayError> {
    check(range.contains(&count), parameter, || format!("{count} is outside {} to {}", range.start(), range.end()))
}

fn buffer(bytes: u64) -> Result<(), ArrayError> {
    check(bytes <= 1 << 40, "disk.write_buffer", || format!("{bytes} bytes is beyond 1 TiB"))
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
