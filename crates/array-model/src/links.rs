//! Ports between hosts and members: each carries its payload in both directions.

use assay_load::SplitMix;

use crate::{ControllerPlan, FaultPlan, LinkPlan, Lost, PathPolicy};

/// Payload of a TCP segment in a jumbo frame of 9,000 bytes.
const PACKET_BYTES: u64 = 8948;
/// A segment is sent again at once when three later ones have arrived (RFC 5681), else after this: the least wait of
/// common systems, where RFC 6298 asks for 1 s.
const RETRANSMIT_NS: u64 = 200_000_000;
const LATER_PACKETS: u64 = 3;

/// A direction of a port: free again at a time, and how much it has carried.
#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    free_ns: u64,
    busy_ns: u64,
    bytes: u64,
}

impl Lane {
    #[inline]
    fn carry(&mut self, from_ns: u64, bytes: u64, ps_per_byte: u64) -> u64 {
        let takes_ns = bytes * ps_per_byte / 1000;
        self.free_ns = self.free_ns.max(from_ns) + takes_ns;
        self.busy_ns += takes_ns;
        self.bytes += bytes;
        self.free_ns
    }

    fn counters([inward, outward]: &[Self; 2], now_ns: u64) -> PortCounters {
        // What is given out beyond now has not been carried yet.
        let busy_ns = |lane: &Self| lane.busy_ns - lane.free_ns.saturating_sub(now_ns).min(lane.busy_ns);
        PortCounters {
            in_bytes: inward.bytes,
            out_bytes: outward.bytes,
            in_busy_ns: busy_ns(inward),
            out_busy_ns: busy_ns(outward),
            ..PortCounters::default()
        }
    }
}

/// The ports of hosts and members. A path is a pair of ports: path `k` leads from port `k` of the host to port `k` of the
/// member, each counted round and round.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    paths: u32,
    policy: PathPolicy,
    host_ports: u32,
    member_ports: u32,
    /// By port of a host: as it is now, and as the plan has it.
    host_ps_per_byte: Vec<u64>,
    planned_ps_per_byte: Vec<u64>,
    member_ps_per_byte: u64,
    overhead_bytes: u64,
    half_latency_ns: u64,
    /// To the member, and back.
    hosts: Vec<[Lane; 2]>,
    members: Vec<[Lane; 2]>,
    /// By host and member: whose turn it is, and commands under way on each path.
    turns: Vec<u32>,
    under_way: Vec<u32>,
    members_count: u32,
    drops: Option<Drops>,
    /// Whether a path may have no room, or be lost.
    is_limited: bool,
    commands_most: u32,
    /// Commands under way by port of all hosts, where these have a limit.
    host_under_way: Vec<u32>,
    controller_ports: u32,
    controllers: u32,
    fault: Option<FaultPlan>,
    state: FaultState,
}

/// How far a loss has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultState {
    None,
    /// Nothing gets through, and hosts have not noticed.
    Silent,
    /// Hosts avoid the paths.
    Noticed,
    /// Another controller serves the ports.
    TakenOver,
}

/// A port that drops packets: each connection over it delivers in order, and so waits for repeated packets.
#[derive(Debug, Clone)]
struct Drops {
    /// Of 2^32.
    share: u64,
    random: SplitMix,
    /// By connection, each way: nothing is delivered before.
    stalled_ns: Vec<[u64; 2]>,
    /// Packets of each host's first port, and packets sent again.
    packets: Vec<[u64; 2]>,
}

impl Drops {
    /// When a message that would be there at `there_ns` is there.
    fn delivered(
        &mut self,
        host: u32,
        connection: u32,
        way: usize,
        there_ns: u64,
        bytes: u64,
        round_trip_ns: u64,
    ) -> u64 {
        let [sent, again] = &mut self.packets[host as usize];
        let stalled_ns = &mut self.stalled_ns[connection as usize][way];
        let mut at_ns = there_ns.max(*stalled_ns);
        let packets = bytes.div_ceil(PACKET_BYTES);
        *sent += packets;
        for packet in 0..packets {
            // What is sent again may be lost again.
            while self.random.next() >> 32 < self.share {
                *again += 1;
                at_ns += if packets - packet > LATER_PACKETS { round_trip_ns } else { RETRANSMIT_NS };
            }
        }
        *stalled_ns = at_ns;
        at_ns
    }
}

/// Traffic of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PortCounters {
    pub(crate) in_bytes: u64,
    pub(crate) out_bytes: u64,
    pub(crate) in_busy_ns: u64,
    pub(crate) out_busy_ns: u64,
    /// Packets of both ways, without repeated ones; counted where packets are lost.
    pub(crate) packets: u64,
    pub(crate) packets_again: u64,
}

impl Links {
    pub(crate) fn new(plan: &LinkPlan, controller: &ControllerPlan, members: u32, seed: u64) -> Self {
        let hosts = &plan.hosts;
        let lanes = |count: u32| vec![[Lane::default(); 2]; count as usize];
        let paths = plan.paths(controller) as u32;
        let pairs = hosts.count * members;
        let ps_per_byte = |share: f64| (1e12 / (hosts.port_bytes_per_s * share)) as u64;
        let share = |port| if port == 0 { hosts.first_port_share } else { 1.0 };
        Self {
            paths,
            policy: plan.policy,
            host_ports: hosts.ports,
            member_ports: controller.all_ports(),
            host_ps_per_byte: (0..hosts.ports).map(|port| ps_per_byte(share(port))).collect(),
            planned_ps_per_byte: (0..hosts.ports).map(|port| ps_per_byte(share(port))).collect(),
            member_ps_per_byte: (1e12 / plan.port_bytes_per_s) as u64,
            overhead_bytes: u64::from(plan.overhead_bytes),
            half_latency_ns: plan.latency_ns / 2,
            hosts: lanes(hosts.count * hosts.ports),
            members: lanes(members * controller.all_ports()),
            turns: vec![0; pairs as usize],
            under_way: vec![0; (pairs * paths) as usize],
            members_count: members,
            drops: (hosts.first_port_loss > 0.0).then(|| Drops {
                share: (hosts.first_port_loss * (1_u64 << 32) as f64) as u64,
                random: SplitMix::new(seed),
                stalled_ns: vec![[0; 2]; (pairs * paths) as usize],
                packets: vec![[0; 2]; hosts.count as usize],
            }),
            is_limited: hosts.commands_most > 0 || plan.fault.is_some(),
            commands_most: hosts.commands_most,
            host_under_way: vec![0; (hosts.count * hosts.ports) as usize],
            controller_ports: controller.ports,
            controllers: controller.count,
            fault: plan.fault,
            state: FaultState::None,
        }
    }

    /// Chooses a path for a command, which from now on is under way on it; none while all are full or known to be lost.
    #[inline]
    pub(crate) fn choose(&mut self, host: u32, member: u32) -> Option<u32> {
        let pair = (host * self.members_count + member) as usize;
        let turn = self.turns[pair];
        let under_way = &self.under_way[pair * self.paths as usize..][..self.paths as usize];
        // Among equals the one whose turn it is.
        let order = (0..self.paths).map(|step| (turn + step) % self.paths);
        let path = match self.policy {
            PathPolicy::RoundRobin if !self.is_limited => turn,
            PathPolicy::RoundRobin => order.clone().find(|path| self.takes(host, member, *path))?,
            PathPolicy::LeastQueueDepth => order
                .filter(|path| !self.is_limited || self.takes(host, member, *path))
                .min_by_key(|path| under_way[*path as usize])?,
        };
        let next = if self.policy == PathPolicy::RoundRobin { path } else { turn };
        self.turns[pair] = if next + 1 == self.paths { 0 } else { next + 1 };
        self.under_way[pair * self.paths as usize + path as usize] += 1;
        if self.is_limited {
            self.host_under_way[(host * self.host_ports + path % self.host_ports) as usize] += 1;
        }
        Some(path)
    }

    /// Whether a host would send a command over a path.
    fn takes(&self, host: u32, member: u32, path: u32) -> bool {
        let port = host * self.host_ports + path % self.host_ports;
        let has_room = self.commands_most == 0 || self.host_under_way[port as usize] < self.commands_most;
        has_room && !(self.state == FaultState::Noticed && self.is_cut(host, member, path))
    }

    /// Whether a path leads over a lost port or controller.
    fn is_cut(&self, host: u32, member: u32, path: u32) -> bool {
        match self.fault.map(|fault| fault.lost) {
            Some(Lost::HostPort) => host == 0 && path.is_multiple_of(self.host_ports),
            Some(Lost::Controller) => member == 0 && path % self.member_ports < self.controller_ports,
            None => false,
        }
    }

    /// Whether nothing gets through on a path.
    #[inline]
    pub(crate) fn is_silent(&self, host: u32, member: u32, path: u32) -> bool {
        matches!(self.state, FaultState::Silent | FaultState::Noticed) && self.is_cut(host, member, path)
    }

    /// Whether hosts know which paths are lost.
    pub(crate) fn is_noticed(&self) -> bool {
        self.state != FaultState::Silent
    }

    /// Changes the planned loss. Only with a planned loss are commands under way counted by port.
    pub(crate) fn lose_instead(&mut self, fault: FaultPlan) {
        debug_assert!(self.fault.is_some(), "the plan has a loss");
        self.fault = Some(fault);
    }

    /// Everything lost is back.
    pub(crate) fn mend(&mut self) {
        self.state = FaultState::None;
    }

    /// A port of every host carries so many times less from now on.
    pub(crate) fn slow_port(&mut self, port: u32, times: u32) {
        self.host_ps_per_byte[port as usize] = self.planned_ps_per_byte[port as usize] * u64::from(times);
    }

    pub(crate) fn host_ports(&self) -> u32 {
        self.host_ports
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state != FaultState::None
    }

    pub(crate) fn lose(&mut self) {
        self.state = FaultState::Silent;
    }

    pub(crate) fn notice(&mut self) {
        if self.state == FaultState::Silent {
            self.state = FaultState::Noticed;
        }
    }

    pub(crate) fn take_over(&mut self) {
        self.state = FaultState::TakenOver;
    }

    /// The controller that serves a path.
    #[inline]
    pub(crate) fn controller(&self, member: u32, path: u32) -> u32 {
        self.member_port(member, path) / self.controller_ports
    }

    /// The member's port of a path; if its controller is lost, the port of the controller that serves instead.
    #[inline]
    fn member_port(&self, member: u32, path: u32) -> u32 {
        let port = path % self.member_ports;
        let moves = self.state == FaultState::TakenOver && self.controllers > 1 && self.is_cut(0, member, path);
        if moves { port + self.controller_ports } else { port }
    }

    /// A command is no longer under way on its path: the host has its answer, or has given it up.
    #[inline]
    pub(crate) fn leave(&mut self, host: u32, member: u32, path: u32) {
        self.under_way[((host * self.members_count + member) * self.paths + path) as usize] -= 1;
        if self.is_limited {
            self.host_under_way[(host * self.host_ports + path % self.host_ports) as usize] -= 1;
        }
    }

    /// Whether hosts may have to wait until commands leave.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Sends a command with its payload; returns when it is there.
    #[inline]
    pub(crate) fn send(&mut self, at_ns: u64, host: u32, member: u32, path: u32, payload_bytes: u64) -> u64 {
        self.carry(0, at_ns, host, member, path, payload_bytes)
    }

    /// Sends the answer; returns when the host has it.
    #[inline]
    pub(crate) fn answer(&mut self, at_ns: u64, host: u32, member: u32, path: u32, payload_bytes: u64) -> u64 {
        self.carry(1, at_ns, host, member, path, payload_bytes)
    }

    #[inline]
    fn carry(&mut self, way: usize, at_ns: u64, host: u32, member: u32, path: u32, payload_bytes: u64) -> u64 {
        let bytes = payload_bytes + self.overhead_bytes;
        let from = path % self.host_ports;
        let to = self.member_port(member, path);
        let host_port = &mut self.hosts[(host * self.host_ports + from) as usize][way];
        let host_ns = host_port.carry(at_ns, bytes, self.host_ps_per_byte[from as usize]);
        let member_port = &mut self.members[(member * self.member_ports + to) as usize][way];
        // Both ends work on the same bytes at the same time; the later one decides.
        let member_ns = member_port.carry(at_ns, bytes, self.member_ps_per_byte);
        let there_ns = host_ns.max(member_ns) + self.half_latency_ns;
        match &mut self.drops {
            Some(drops) if from == 0 => {
                let connection = (host * self.members_count + member) * self.paths + path;
                drops.delivered(host, connection, way, there_ns, bytes, 2 * self.half_latency_ns)
            }
            _ => there_ns,
        }
    }

    /// Carries a piece from a port of one member to that of another; returns when it is there.
    pub(crate) fn between(&mut self, at_ns: u64, from: u32, to: u32, port: u32, bytes: u64) -> u64 {
        let (port, bytes) = (port % self.member_ports, bytes + self.overhead_bytes);
        let mut carry = |member: u32, way: usize| {
            self.members[(member * self.member_ports + port) as usize][way].carry(at_ns, bytes, self.member_ps_per_byte)
        };
        carry(from, 1).max(carry(to, 0)) + self.half_latency_ns
    }

    /// A member joins the others.
    pub(crate) fn join(&mut self) {
        let (before, paths) = (self.members_count as usize, self.paths as usize);
        self.members_count += 1;
        self.members.extend((0..self.member_ports).map(|_| [Lane::default(); 2]));
        joined(&mut self.turns, before, 1, &0);
        joined(&mut self.under_way, before, paths, &0);
        if let Some(drops) = &mut self.drops {
            joined(&mut drops.stalled_ns, before, paths, &[0; 2]);
        }
    }

    /// Traffic of each port of a member.
    pub(crate) fn of_member(&self, member: u32, now_ns: u64) -> impl Iterator<Item = PortCounters> {
        let ports = &self.members[(member * self.member_ports) as usize..][..self.member_ports as usize];
        ports.iter().map(move |port| Lane::counters(port, now_ns))
    }

    /// Traffic of each port of a host.
    pub(crate) fn of_host(&self, host: u32, now_ns: u64) -> impl Iterator<Item = PortCounters> {
        let ports = &self.hosts[(host * self.host_ports) as usize..][..self.host_ports as usize];
        let [packets, packets_again] = self.drops.as_ref().map_or([0; 2], |drops| drops.packets[host as usize]);
        ports.iter().enumerate().map(move |(number, port)| match number {
            0 => PortCounters { packets, packets_again, ..Lane::counters(port, now_ns) },
            _ => Lane::counters(port, now_ns),
        })
    }
}

/// Makes room for one more member in a table by host and member, with `each` entries for each pair.
fn joined<T: Clone>(kept: &mut Vec<T>, members: usize, each: usize, empty: &T) {
    let by_host = std::mem::take(kept);
    for host in by_host.chunks(members * each) {
        kept.extend_from_slice(host);
        kept.extend(std::iter::repeat_n(empty.clone(), each));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostPlan;

    fn links(policy: PathPolicy, paths: u32, members: u32) -> Links {
        between(paths, paths, members, |plan| plan.policy = policy)
    }

    /// Two hosts with `host_ports` ports each, and members with `member_ports` ports of 100 MB/s.
    fn between(host_ports: u32, member_ports: u32, members: u32, change: impl FnOnce(&mut LinkPlan)) -> Links {
        let controller =
            ControllerPlan { count: 1, ports: member_ports, cpu_per_io_ns: 0, cpu_bytes_per_s: 1e9, cores: 1 };
        let mut plan = LinkPlan {
            hosts: HostPlan {
                count: 2,
                ports: host_ports,
                port_bytes_per_s: 1e8,
                first_port_share: 1.0,
                first_port_loss: 0.0,
                commands_most: 0,
                path_timeout_ns: 0,
            },
            policy: PathPolicy::RoundRobin,
            port_bytes_per_s: 1e8,
            overhead_bytes: 100,
            latency_ns: 200_000,
            max_transfer_bytes: 0,
            fault: None,
        };
        change(&mut plan);
        Links::new(&plan, &controller, members, 1)
    }

    /// Chooses a path and sends over it: the path, and when it is there.
    fn send(links: &mut Links, at_ns: u64, host: u32, member: u32, bytes: u64) -> (u32, u64) {
        let path = links.choose(host, member).expect("a path is free");
        (path, links.send(at_ns, host, member, path, bytes))
    }

    #[test]
    fn a_command_takes_its_bytes_and_half_the_latency_each_way() {
        let mut links = links(PathPolicy::RoundRobin, 1, 1);
        let (path, there_ns) = send(&mut links, 5000, 0, 0, 9900);
        assert_eq!((path, there_ns), (0, 5000 + 100_000 + 100_000));
        assert_eq!(links.answer(1_000_000, 0, 0, 0, 0), 1_000_000 + 1_000 + 100_000);
        let port = links.of_member(0, u64::MAX).next().unwrap();
        let carried =
            PortCounters { in_bytes: 10_000, out_bytes: 100, in_busy_ns: 100_000, out_busy_ns: 1_000, ..port };
        assert_eq!(port, carried);
        assert_eq!((port.packets, port.packets_again), (0, 0));
    }

    #[test]
    fn a_port_carries_no_more_than_its_rate_and_both_directions_at_once() {
        let mut links = links(PathPolicy::RoundRobin, 1, 1);
        let last_ns = (0..1000).map(|_| send(&mut links, 0, 0, 0, 9900).1).last().unwrap();
        assert_eq!(last_ns, 1000 * 100_000 + 100_000);
        assert_eq!(links.answer(0, 0, 0, 0, 9900), 200_000, "the other direction is free");
        // Another host has ports of its own, but the member's are the same.
        assert_eq!(send(&mut links, 0, 1, 0, 9900).1, 1001 * 100_000 + 100_000);
    }

    #[test]
    fn ports_of_different_members_work_side_by_side_unless_the_host_has_one() {
        let mut links = links(PathPolicy::RoundRobin, 2, 2);
        let there: Vec<(u32, u64)> = (0..4).map(|number| send(&mut links, 0, 0, number % 2, 9900)).collect();
        // The host's first port carries to both members, then its second does.
        assert_eq!(there, [(0, 200_000), (0, 300_000), (1, 200_000), (1, 300_000)]);
    }

    #[test]
    fn round_robin_takes_turns_and_least_queue_depth_the_emptiest_path() {
        let mut turns = links(PathPolicy::RoundRobin, 3, 1);
        let paths: Vec<u32> = (0..6).map(|_| send(&mut turns, 0, 0, 0, 0).0).collect();
        assert_eq!(paths, [0, 1, 2, 0, 1, 2]);
        let mut least = links(PathPolicy::LeastQueueDepth, 3, 1);
        let paths: Vec<u32> = (0..6).map(|_| send(&mut least, 0, 0, 0, 0).0).collect();
        assert_eq!(paths.iter().filter(|path| **path == 1).count(), 2);
        least.answer(0, 0, 0, 1, 0);
        least.leave(0, 0, 1);
        least.leave(0, 0, 1);
        assert_eq!([send(&mut least, 0, 0, 0, 0).0, send(&mut least, 0, 0, 0, 0).0], [1, 1]);
    }

    #[test]
    fn ports_of_unequal_number_are_used_alike() {
        // One host port over two members of one port each, and three over one member of two.
        let mut one = between(2, 1, 2, |_| {});
        let there: Vec<u64> = (0..4).map(|number| send(&mut one, 0, 0, number / 2, 9900).1).collect();
        assert_eq!(there, [200_000, 300_000, 300_000, 300_000], "the first member's port, then the host's");
        let mut three = between(3, 2, 1, |_| {});
        for _ in 0..600 {
            send(&mut three, 0, 0, 0, 9900);
        }
        let bytes = |ports: Vec<PortCounters>| ports.iter().map(|port| port.in_bytes).collect::<Vec<_>>();
        assert_eq!(bytes(three.of_host(0, 0).collect()), [2_000_000; 3]);
        assert_eq!(bytes(three.of_member(0, 0).collect()), [3_000_000; 2]);
    }

    #[test]
    fn a_full_initiator_takes_no_more_until_a_command_leaves() {
        let mut links = between(2, 2, 1, |plan| plan.hosts.commands_most = 3);
        let paths: Vec<Option<u32>> = (0..7).map(|_| links.choose(0, 0)).collect();
        assert_eq!(paths, [Some(0), Some(1), Some(0), Some(1), Some(0), Some(1), None]);
        links.leave(0, 0, 1);
        assert_eq!([links.choose(0, 0), links.choose(0, 0)], [Some(1), None]);
    }

    #[test]
    fn round_robin_waits_for_a_slow_port_and_a_dropped_packet_holds_up_its_connection() {
        let mut slow = between(2, 2, 1, |plan| plan.hosts.first_port_share = 0.1);
        assert_eq!([send(&mut slow, 0, 0, 0, 9900).1, send(&mut slow, 0, 0, 0, 9900).1], [1_100_000, 200_000]);
        let mut lossy = between(1, 1, 1, |plan| plan.hosts.first_port_loss = 0.01);
        let there: Vec<u64> = (0..1000).map(|number| send(&mut lossy, number * 1_000_000, 0, 0, 9900).1).collect();
        assert!(there.is_sorted(), "what follows a lost packet waits for it");
        let PortCounters { packets, packets_again, .. } = lossy.of_host(0, 0).next().unwrap();
        assert_eq!(packets, 1000 * 10_000_u64.div_ceil(PACKET_BYTES));
        assert!((8..=40).contains(&packets_again), "{packets_again} of {packets}");
        let late = there.iter().zip(0..).filter(|(at_ns, number)| **at_ns > number * 1_000_000 + 200_000).count();
        assert!((800..=1000).contains(&late), "one packet in a hundred costs 200 of them their time, not {late}");
    }
}
