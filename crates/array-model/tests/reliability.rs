//! Closed forms against published figures and against simulation.

use assay_array_model::RaidPolicy;
use assay_array_model::reliability::{Ageing, Assessment, Inputs, Layout, RebuildTime, Request, Unreadable, assess};
use proptest::prelude::*;

const FIVE_YEARS_H: f64 = 5.0 * 8760.0;

/// Elerath's latent defects, and the bit errors of a data sheet.
const LATENT: Unreadable = Unreadable::LatentDefects { rate_per_h: 1.08e-4, scrub_h: 168.0 };
const BITS: Unreadable = Unreadable::BitErrors { rate: 1e-15 };

fn inputs(mtbf_h: f64, disk_bytes: u64, unreadable: Unreadable) -> Inputs {
    Inputs { mtbf_h, disk_bytes, unreadable, service_h: FIVE_YEARS_H, rebuild: RebuildTime::Fixed }
}

fn layout(policy: RaidPolicy, disks: u32, rebuild_h: f64) -> Layout {
    Layout { policy, disks, set_disks: 0, rebuild_h }
}

fn request(inputs: Inputs, layouts: Vec<Layout>, trials: u32) -> Request {
    Request { inputs, layouts, trials, seed: 1, ageing: None }
}

fn closed(inputs: &Inputs, layouts: Vec<Layout>) -> Vec<Assessment> {
    assess(&request(inputs.clone(), layouts, 0)).unwrap().layouts
}

/// How much more often the first layout loses data than the second.
fn ratio(inputs: &Inputs, one: Layout, other: Layout) -> f64 {
    let found = closed(inputs, vec![one, other]);
    found[1].closed.mttdl_h / found[0].closed.mttdl_h
}

fn close(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 5e-4
}

#[test]
fn groups_of_eight_with_latent_defects_give_the_known_ratios() {
    let inputs = inputs(461_386.0, 144_000_000_000, LATENT);
    let dp = layout(RaidPolicy::Dp, 8, 18.0);
    let five = layout(RaidPolicy::Raid5, 8, 18.0);
    let pair = layout(RaidPolicy::Raid10, 2, 18.0);
    assert!(close(ratio(&inputs, five.clone(), dp.clone()), 4253.0));
    assert!(close(ratio(&inputs, pair, dp), 156.0));
    let loss = closed(&inputs, vec![five])[0].closed.loss_probability;
    assert!((loss - 0.046).abs() < 5e-4, "{loss}");
}

#[test]
fn wide_groups_with_bit_errors_give_the_known_ratios() {
    let inputs = inputs(500_000.0, 300_000_000_000, BITS);
    let dp = layout(RaidPolicy::Dp, 16, 8.3);
    for (policy, disks, expected) in [
        (RaidPolicy::Raid5, 16, 4298.0),
        (RaidPolicy::Raid10, 16, 291.0),
        (RaidPolicy::Raid5, 15, 3765.0),
        (RaidPolicy::Raid10, 28, 510.0),
    ] {
        let found = ratio(&inputs, layout(policy, disks, 8.3), dp.clone());
        assert!((found / expected - 1.0).abs() < 2e-3, "{policy:?} of {disks}: {found}");
    }
}

#[test]
fn halving_the_scrub_period_halves_the_loss() {
    let loss = |scrub_h| {
        let unreadable = Unreadable::LatentDefects { rate_per_h: 1.08e-4, scrub_h };
        closed(&inputs(461_386.0, 1, unreadable), vec![layout(RaidPolicy::Raid5, 8, 18.0)])[0].closed.loss_probability
    };
    assert!((loss(168.0) / loss(84.0) - 2.0).abs() < 0.1);
}

#[test]
fn without_unreadable_data_the_forms_are_the_textbook_ones() {
    let inputs = inputs(1e6, 1, Unreadable::BitErrors { rate: 0.0 });
    let found = closed(&inputs, vec![layout(RaidPolicy::Raid5, 5, 10.0), layout(RaidPolicy::Raid6, 6, 10.0)]);
    assert!(close(found[0].closed.mttdl_h, 1e12 / (5.0 * 4.0 * 10.0)));
    assert!(close(found[1].closed.mttdl_h, 1e18 / (6.0 * 5.0 * 4.0 * 100.0)));
}

#[test]
fn layouts_become_groups() {
    let inputs = inputs(1e6, 1 << 37, BITS);
    let sets = |policy, disks, set_disks| Layout { policy, disks, set_disks, rebuild_h: 5.0 };
    let found = closed(
        &inputs,
        vec![
            sets(RaidPolicy::Raid0, 22, 0),
            sets(RaidPolicy::Raid1, 2, 0),
            sets(RaidPolicy::Raid10, 22, 0),
            sets(RaidPolicy::Raid5, 22, 0),
            sets(RaidPolicy::Raid50, 22, 11),
            sets(RaidPolicy::Raid60, 22, 11),
            sets(RaidPolicy::Dp, 32, 16),
        ],
    );
    let groups: Vec<_> =
        found.iter().map(|found| (found.groups, found.group_disks, found.tolerates, found.data_disks)).collect();
    let expected =
        [(1, 22, 0, 22), (1, 2, 1, 1), (11, 2, 1, 11), (1, 22, 1, 21), (2, 11, 1, 20), (2, 11, 2, 18), (2, 16, 2, 28)];
    assert_eq!(groups, expected);
    let of_one_set = closed(&inputs, vec![sets(RaidPolicy::Raid5, 11, 0)])[0].closed;
    assert!(close(found[4].closed.mttdl_h, of_one_set.mttdl_h / 2.0));
    assert!(close(found[0].closed.mttdl_h, 1e6 / 22.0));
}

#[test]
fn closed_forms_lie_in_the_intervals_of_the_simulation() {
    let cases = [
        inputs(461_386.0, 144_000_000_000, LATENT),
        inputs(500_000.0, 300_000_000_000, BITS),
        inputs(1_600_000.0, 146_000_000_000, Unreadable::BitErrors { rate: 1e-16 }),
        inputs(200_000.0, 8_000_000_000_000, BITS),
        inputs(1_000_000.0, 1, Unreadable::BitErrors { rate: 0.0 }),
    ];
    for (case, inputs) in cases.into_iter().enumerate() {
        for rebuild in [RebuildTime::Fixed, RebuildTime::Exponential] {
            let inputs = Inputs { rebuild, ..inputs.clone() };
            let layouts = vec![
                layout(RaidPolicy::Raid0, 8, 18.0),
                layout(RaidPolicy::Raid10, 16, 18.0),
                layout(RaidPolicy::Raid5, 8, 18.0),
                layout(RaidPolicy::Raid6, 12, 18.0),
                Layout { policy: RaidPolicy::Dp, disks: 32, set_disks: 16, rebuild_h: 8.3 },
            ];
            for found in assess(&request(inputs, layouts, 100_000)).unwrap().layouts {
                let simulated = found.simulated.unwrap();
                let [low, high] = simulated.mttdl_interval_95_h;
                assert!(simulated.agrees, "case {case}, {rebuild:?}: {found:?}");
                assert!(high / low < 1.08, "case {case}, {rebuild:?}: {found:?}");
            }
        }
    }
}

/// Here rebuilds take a tenth of a disk's life, and the first order is not enough.
#[test]
fn the_simulation_says_where_the_closed_form_ends() {
    let inputs = inputs(1000.0, 1, Unreadable::BitErrors { rate: 0.0 });
    let found = assess(&request(inputs, vec![layout(RaidPolicy::Raid5, 8, 100.0)], 100_000)).unwrap().layouts;
    let simulated = found[0].simulated.unwrap();
    assert!(!simulated.agrees);
    assert!(simulated.mttdl_h > found[0].closed.mttdl_h * 1.3);
}

/// The exact mean with rebuilds of fixed time: hours of a cycle over the probability that it loses data.
#[test]
fn intervals_hold_the_exact_mean_in_95_of_100_runs() {
    let (mtbf_h, rebuild_h, defects_per_disk) = (10_000.0, 200.0, 0.02_f64);
    let inputs = Inputs {
        mtbf_h,
        disk_bytes: 1,
        unreadable: Unreadable::LatentDefects { rate_per_h: defects_per_disk, scrub_h: 2.0 },
        service_h: 1000.0,
        rebuild: RebuildTime::Fixed,
    };
    let readable = |disks: f64| libm::exp(-disks * defects_per_disk);
    let fails = |disks: f64| 1.0 - libm::exp(-disks * rebuild_h / mtbf_h);
    let hours = |disks: f64| fails(disks) * mtbf_h / disks;
    let five_hours = mtbf_h / 6.0 + readable(5.0) * hours(5.0);
    let five = five_hours / (1.0 - readable(5.0) * (1.0 - fails(5.0)));
    let six_hours = mtbf_h / 6.0 + hours(5.0) + fails(5.0) * readable(4.0) * hours(4.0);
    let six = six_hours / (fails(5.0) * (1.0 - readable(4.0) * (1.0 - fails(4.0))));
    let mut held = [0, 0];
    for seed in 0..300 {
        let layouts = vec![layout(RaidPolicy::Raid5, 6, rebuild_h), layout(RaidPolicy::Raid6, 6, rebuild_h)];
        let found = assess(&Request { seed, ..request(inputs.clone(), layouts, 2000) }).unwrap().layouts;
        for ((found, exact), held) in found.iter().zip([five, six]).zip(&mut held) {
            let [low, high] = found.simulated.unwrap().mttdl_interval_95_h;
            *held += u32::from((low..=high).contains(&exact));
        }
    }
    // 285 expected with a standard deviation of 3.8.
    assert!(held.iter().all(|held| (270..=298).contains(held)), "{held:?} of 300");
}

#[test]
fn disks_that_do_not_age_lose_data_as_the_closed_form_says() {
    let ageing = Ageing { failure_shape: 1.0, restore_shape: 1.0, restore_least: 0.0 };
    for inputs in [inputs(461_386.0, 1, LATENT), inputs(200_000.0, 4_000_000_000_000, BITS)] {
        let layouts = vec![
            layout(RaidPolicy::Raid0, 8, 18.0),
            layout(RaidPolicy::Raid10, 16, 18.0),
            layout(RaidPolicy::Raid5, 8, 18.0),
            layout(RaidPolicy::Dp, 8, 18.0),
        ];
        let asked = Request { ageing: Some(ageing), ..request(inputs, layouts, 50_000) };
        for found in assess(&asked).unwrap().layouts {
            let [low, high] = found.aged.unwrap().loss_interval_95;
            let expected = found.closed.loss_probability;
            assert!(low * 0.99 <= expected && expected <= high * 1.01, "{found:?}");
        }
    }
}

#[test]
fn disks_that_wear_out_lose_less_in_their_first_years() {
    let loss = |failure_shape| {
        let ageing = Ageing { failure_shape, restore_shape: 2.0, restore_least: 0.33 };
        let layouts = vec![layout(RaidPolicy::Raid5, 8, 18.0)];
        let asked = Request { ageing: Some(ageing), ..request(inputs(461_386.0, 1, LATENT), layouts, 20_000) };
        assess(&asked).unwrap().layouts[0].aged.unwrap().loss_probability
    };
    assert!(loss(0.7) > 1.5 * loss(1.0) && loss(1.0) > 1.2 * loss(1.12), "{:?}", [0.7, 1.0, 1.12].map(loss));
}

#[test]
fn the_same_seed_gives_the_same_digits() {
    let layouts = vec![layout(RaidPolicy::Raid5, 8, 18.0), layout(RaidPolicy::Dp, 8, 18.0)];
    let mut asked = request(inputs(461_386.0, 1, LATENT), layouts, 20_000);
    let first = assess(&asked).unwrap();
    assert_eq!(first, assess(&asked).unwrap());
    asked.layouts.truncate(1);
    assert_eq!(assess(&asked).unwrap().layouts[0], first.layouts[0]);
    asked.seed = 2;
    assert_ne!(assess(&asked).unwrap().layouts[0].simulated, first.layouts[0].simulated);
}

#[test]
fn impossible_requests_are_refused_in_one_line() {
    let with = |change: fn(&mut Request)| {
        let mut asked = request(inputs(1e6, 1 << 37, BITS), vec![layout(RaidPolicy::Raid6, 8, 5.0)], 0);
        change(&mut asked);
        assess(&asked).unwrap_err().to_string()
    };
    let refusals = [
        (with(|asked| asked.layouts[0].disks = 3), "RAID 6 of 3 disks"),
        (with(|asked| asked.layouts[0].rebuild_h = 0.0), "rebuild: 0"),
        (with(|asked| asked.layouts[0].rebuild_h = 2e6), "not shorter than the MTBF"),
        (with(|asked| asked.inputs.mtbf_h = f64::NAN), "mtbf: NaN"),
        (with(|asked| asked.inputs.mtbf_h = -1.0), "mtbf: -1"),
        (with(|asked| asked.inputs.service_h = 0.0), "service: 0"),
        (with(|asked| asked.inputs.disk_bytes = 0), "disk.capacity"),
        (with(|asked| asked.inputs.unreadable = Unreadable::BitErrors { rate: 1.0 }), "ber: 1"),
        (
            with(|asked| asked.inputs.unreadable = Unreadable::LatentDefects { rate_per_h: 1e-4, scrub_h: 0.0 }),
            "scrub: 0",
        ),
        (with(|asked| asked.trials = 10), "trials: 10"),
        (
            with(|asked| {
                asked.trials = 1000;
                asked.ageing = Some(Ageing { failure_shape: 0.0, restore_shape: 1.0, restore_least: 0.0 });
            }),
            "ageing.failure_shape: 0",
        ),
    ];
    for (message, expected) in refusals {
        assert!(message.contains(expected) && !message.contains('\n'), "{message:?} should say {expected:?}");
    }
}

fn policies() -> impl Strategy<Value = (RaidPolicy, u32, u32)> {
    prop_oneof![
        (1u32..24).prop_map(|disks| (RaidPolicy::Raid0, disks, 0)),
        (1u32..12).prop_map(|pairs| (RaidPolicy::Raid10, 2 * pairs, 0)),
        (3u32..24).prop_map(|disks| (RaidPolicy::Raid5, disks, 0)),
        (4u32..24).prop_map(|disks| (RaidPolicy::Raid6, disks, 0)),
        (3u32..20, 1u32..4).prop_map(|(set, sets)| (RaidPolicy::Dp, set * sets, set)),
    ]
}

proptest! {
    /// Worse disks, slower rebuilds and longer service never make a loss less likely.
    #[test]
    fn loss_rises_with_everything_that_is_worse(
        (policy, disks, set_disks) in policies(),
        mtbf_h in 1e4f64..1e7,
        rebuild_h in 0.1f64..200.0,
        rate in prop_oneof![Just(0.0), 1e-17f64..1e-14],
        disk_bytes in 1_000_000_000u64..20_000_000_000_000,
        worse in 1.0f64..5.0,
    ) {
        let base = inputs(mtbf_h, disk_bytes, Unreadable::BitErrors { rate });
        let layout = Layout { policy, disks, set_disks, rebuild_h };
        let of = |inputs: Inputs, layout: &Layout| closed(&inputs, vec![layout.clone()])[0].closed;
        let found = of(base.clone(), &layout);
        prop_assert!(found.mttdl_h > 0.0 && found.mttdl_h.is_finite());
        prop_assert!((0.0..=1.0).contains(&found.loss_probability));
        let slower = Layout { rebuild_h: rebuild_h * worse, ..layout.clone() };
        let others = [
            of(Inputs { mtbf_h: mtbf_h / worse, ..base.clone() }, &layout),
            of(Inputs { unreadable: Unreadable::BitErrors { rate: rate * worse }, ..base.clone() }, &layout),
            of(Inputs { disk_bytes: (disk_bytes as f64 * worse) as u64, ..base.clone() }, &layout),
            of(base.clone(), &slower),
        ];
        for other in others {
            prop_assert!(other.mttdl_h <= found.mttdl_h * (1.0 + 1e-12));
            prop_assert!(other.loss_probability >= found.loss_probability * (1.0 - 1e-12));
        }
        let longer = of(Inputs { service_h: base.service_h * worse, ..base }, &layout);
        prop_assert!(longer.loss_probability >= found.loss_probability);
    }

    /// More parity on the same disks loses data later, one disk more in a set sooner.
    #[test]
    fn redundancy_helps_and_width_does_not(disks in 4u32..30, mtbf_h in 1e5f64..1e7, rebuild_h in 0.1f64..100.0) {
        let inputs = inputs(mtbf_h, 1_000_000_000_000, BITS);
        let found = closed(&inputs, vec![
            layout(RaidPolicy::Raid0, disks, rebuild_h),
            layout(RaidPolicy::Raid5, disks, rebuild_h),
            layout(RaidPolicy::Raid6, disks, rebuild_h),
            layout(RaidPolicy::Raid6, disks + 1, rebuild_h),
        ]);
        let mttdl: Vec<f64> = found.iter().map(|found| found.closed.mttdl_h).collect();
        prop_assert!(mttdl[0] < mttdl[1] && mttdl[1] < mttdl[2] && mttdl[3] < mttdl[2], "{mttdl:?}");
    }
}
