//! Ports between hosts and members: each carries its payload in both directions.

use crate::{LinkPlan, PathPolicy};

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
}

/// The ports of hosts and members, a path being the port of the same number at both ends.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    paths: u32,
    policy: PathPolicy,
    ps_per_byte: u64,
    overhead_bytes: u64,
    half_latency_ns: u64,
    /// To the member, and back.
    hosts: Vec<[Lane; 2]>,
    members: Vec<[Lane; 2]>,
    /// By host and member: whose turn it is, and commands under way on each path.
    turns: Vec<u32>,
    under_way: Vec<u32>,
    members_count: u32,
}

/// What a port has carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PortCounters {
    pub(crate) in_bytes: u64,
    pub(crate) out_bytes: u64,
    pub(crate) in_busy_ns: u64,
    pub(crate) out_busy_ns: u64,
}

impl Links {
    pub(crate) fn new(plan: &LinkPlan, members: u32) -> Self {
        let ports = |count: u32| vec![[Lane::default(); 2]; (count * plan.paths) as usize];
        Self {
            paths: plan.paths,
            policy: plan.policy,
            ps_per_byte: (1e12 / plan.port_bytes_per_s) as u64,
            overhead_bytes: u64::from(plan.overhead_bytes),
            half_latency_ns: plan.latency_ns / 2,
            hosts: ports(plan.hosts),
            members: ports(members),
            turns: vec![0; (plan.hosts * members) as usize],
            under_way: vec![0; (plan.hosts * members * plan.paths) as usize],
            members_count: members,
        }
    }

    /// Chooses a path and sends a command with its payload; returns the path and when it is there.
    #[inline]
    pub(crate) fn send(&mut self, at_ns: u64, host: u32, member: u32, payload_bytes: u64) -> (u32, u64) {
        let pair = (host * self.members_count + member) as usize;
        let under_way = &mut self.under_way[pair * self.paths as usize..][..self.paths as usize];
        let turn = self.turns[pair];
        self.turns[pair] = if turn + 1 == self.paths { 0 } else { turn + 1 };
        let path = match self.policy {
            PathPolicy::RoundRobin => turn,
            PathPolicy::LeastQueueDepth => {
                // Among equals the one whose turn it is.
                let order = (0..self.paths).map(|step| (turn + step) % self.paths);
                order.min_by_key(|path| under_way[*path as usize]).unwrap_or(0)
            }
        };
        under_way[path as usize] += 1;
        (path, self.carry(0, at_ns, host, member, path, payload_bytes))
    }

    /// Sends the answer; returns when the host has it.
    #[inline]
    pub(crate) fn answer(&mut self, at_ns: u64, host: u32, member: u32, path: u32, payload_bytes: u64) -> u64 {
        let pair = host * self.members_count + member;
        self.under_way[(pair * self.paths + path) as usize] -= 1;
        self.carry(1, at_ns, host, member, path, payload_bytes)
    }

    #[inline]
    fn carry(&mut self, way: usize, at_ns: u64, host: u32, member: u32, path: u32, payload_bytes: u64) -> u64 {
        let bytes = payload_bytes + self.overhead_bytes;
        let host_port = &mut self.hosts[(host * self.paths + path) as usize][way];
        let host_ns = host_port.carry(at_ns, bytes, self.ps_per_byte);
        let member_port = &mut self.members[(member * self.paths + path) as usize][way];
        // Both ends work on the same bytes at the same time; the later one decides.
        let member_ns = member_port.carry(at_ns, bytes, self.ps_per_byte);
        host_ns.max(member_ns) + self.half_latency_ns
    }

    /// What each port of a member has carried.
    pub(crate) fn counters(&self, member: u32, now_ns: u64) -> impl Iterator<Item = PortCounters> {
        // What is given out beyond now has not been carried yet.
        let busy_ns = move |lane: &Lane| lane.busy_ns - lane.free_ns.saturating_sub(now_ns).min(lane.busy_ns);
        self.members[(member * self.paths) as usize..][..self.paths as usize].iter().map(move |[inward, outward]| {
            PortCounters {
                in_bytes: inward.bytes,
                out_bytes: outward.bytes,
                in_busy_ns: busy_ns(inward),
                out_busy_ns: busy_ns(outward),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(policy: PathPolicy, paths: u32, members: u32) -> Links {
        let plan = LinkPlan {
            paths,
            policy,
            port_bytes_per_s: 1e8,
            overhead_bytes: 100,
            latency_ns: 200_000,
            max_transfer_bytes: 0,
            hosts: 2,
        };
        Links::new(&plan, members)
    }

    #[test]
    fn a_command_takes_its_bytes_and_half_the_latency_each_way() {
        let mut links = links(PathPolicy::RoundRobin, 1, 1);
        let (path, there_ns) = links.send(5000, 0, 0, 9900);
        assert_eq!((path, there_ns), (0, 5000 + 100_000 + 100_000));
        assert_eq!(links.answer(1_000_000, 0, 0, 0, 0), 1_000_000 + 1_000 + 100_000);
        let port = links.counters(0, u64::MAX).next().unwrap();
        assert_eq!(port, PortCounters { in_bytes: 10_000, out_bytes: 100, in_busy_ns: 100_000, out_busy_ns: 1_000 });
    }

    #[test]
    fn a_port_carries_no_more_than_its_rate_and_both_directions_at_once() {
        let mut links = links(PathPolicy::RoundRobin, 1, 1);
        let last_ns = (0..1000).map(|_| links.send(0, 0, 0, 9900).1).last().unwrap();
        assert_eq!(last_ns, 1000 * 100_000 + 100_000);
        assert_eq!(links.answer(0, 0, 0, 0, 9900), 200_000, "the other direction is free");
        // Another host has ports of its own, but the member's are the same.
        assert_eq!(links.send(0, 1, 0, 9900).1, 1001 * 100_000 + 100_000);
    }

    #[test]
    fn ports_of_different_members_work_side_by_side_unless_the_host_has_one() {
        let mut links = links(PathPolicy::RoundRobin, 2, 2);
        let there: Vec<(u32, u64)> = (0..4).map(|number| links.send(0, 0, number % 2, 9900)).collect();
        // The host's first port carries to both members, then its second does.
        assert_eq!(there, [(0, 200_000), (0, 300_000), (1, 200_000), (1, 300_000)]);
    }

    #[test]
    fn round_robin_takes_turns_and_least_queue_depth_the_emptiest_path() {
        let mut turns = links(PathPolicy::RoundRobin, 3, 1);
        let paths: Vec<u32> = (0..6).map(|_| turns.send(0, 0, 0, 0).0).collect();
        assert_eq!(paths, [0, 1, 2, 0, 1, 2]);
        let mut least = links(PathPolicy::LeastQueueDepth, 3, 1);
        let paths: Vec<u32> = (0..6).map(|_| least.send(0, 0, 0, 0).0).collect();
        assert_eq!(paths.iter().filter(|path| **path == 1).count(), 2);
        least.answer(0, 0, 0, 1, 0);
        least.answer(0, 0, 0, 1, 0);
        assert_eq!([least.send(0, 0, 0, 0).0, least.send(0, 0, 0, 0).0], [1, 1]);
    }
}
