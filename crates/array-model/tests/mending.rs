//! Ports and controllers that are lost and come back, again and again: nothing of an earlier loss acts on a later one.

mod plans;

use assay_array_model::{ArrayModel, ArrayPlan, FaultPlan, Lost, RaidPolicy};
use assay_load::{Op, Simulated};
use plans::{SECOND, perform, plan, request, set_paths};

const TIMEOUT_NS: u64 = 5 * SECOND;
const FAILOVER_NS: u64 = 3 * SECOND;
/// So long a lost path is not known to be lost, or no controller has taken its ports over.
const WAITS_NS: [u64; 6] = [0, 1, SECOND, FAILOVER_NS, FAILOVER_NS + 1, 2 * TIMEOUT_NS];

/// Two paths, of which any may be lost while the array runs.
fn two_paths() -> ArrayPlan {
    let mut plan = plan(RaidPolicy::Raid10);
    set_paths(&mut plan, 2);
    plan.links.hosts.path_timeout_ns = TIMEOUT_NS;
    plan.links.fault = Some(FaultPlan { lost: Lost::Controller, at_ns: FaultPlan::NEVER_NS, failover_ns: FAILOVER_NS });
    plan
}

/// Lets time pass without a command.
fn idle(model: &mut ArrayModel, now_ns: &mut u64, wait_ns: u64) {
    let until_ns = *now_ns + wait_ns;
    while *now_ns < until_ns {
        *now_ns = model.advance(until_ns, &mut Vec::new());
    }
}

/// How long reads take, the worst of some that go over every path.
fn worst_read_ns(model: &mut ArrayModel, now_ns: &mut u64) -> u64 {
    let reads = (0..8_u64).map(|number| {
        let began_ns = *now_ns;
        perform(model, now_ns, request(Op::Read, 0, number * 8192, 8192, 0)).at_ns - began_ns
    });
    reads.max().expect("there are some")
}

#[test]
fn what_is_mended_can_be_lost_again_at_any_time() {
    for first in [Lost::Controller, Lost::HostPort] {
        for second in [Lost::Controller, Lost::HostPort] {
            for lost_for_ns in WAITS_NS {
                for well_for_ns in WAITS_NS {
                    let mut model = ArrayModel::new(&two_paths()).unwrap();
                    let mut now_ns = 0;
                    model.lose_path(first, FAILOVER_NS).unwrap();
                    idle(&mut model, &mut now_ns, lost_for_ns);
                    model.mend_paths();
                    idle(&mut model, &mut now_ns, well_for_ns);
                    let again = model.lose_path(second, FAILOVER_NS);
                    assert!(
                        again.is_ok(),
                        "{first:?} for {lost_for_ns}, well for {well_for_ns}, {second:?}: {again:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_loss_that_was_mended_holds_no_command_up() {
    for lost in [Lost::Controller, Lost::HostPort] {
        for wait_ns in WAITS_NS {
            let mut model = ArrayModel::new(&two_paths()).unwrap();
            let mut now_ns = 0;
            model.lose_path(lost, FAILOVER_NS).unwrap();
            idle(&mut model, &mut now_ns, wait_ns);
            model.mend_paths();
            for _ in 0..3 {
                let worst_ns = worst_read_ns(&mut model, &mut now_ns);
                assert!(worst_ns < SECOND, "{lost:?} for {wait_ns}: a read took {worst_ns} ns");
                idle(&mut model, &mut now_ns, FAILOVER_NS);
            }
        }
    }
}

#[test]
fn an_earlier_takeover_does_not_end_a_later_loss() {
    let mut model = ArrayModel::new(&two_paths()).unwrap();
    let mut now_ns = 0;
    model.lose_path(Lost::Controller, FAILOVER_NS).unwrap();
    idle(&mut model, &mut now_ns, SECOND);
    model.mend_paths();
    idle(&mut model, &mut now_ns, SECOND);
    model.lose_path(Lost::Controller, FAILOVER_NS).unwrap();
    let worst_ns = worst_read_ns(&mut model, &mut now_ns);
    assert!(worst_ns >= FAILOVER_NS, "the ports were taken over {worst_ns} ns after the second loss");
}
