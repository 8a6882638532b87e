//! Served volumes of a cloud: bytes are kept, and the end of credits is told once, when the formula says.

use assay_array_model::{AccountingPlan, CloudPlan, CloudVolumePlan, LatencyPlan, LimitPlan, ModelPlan};
use assay_load::{Op, Request};

use super::Cloud;
use crate::{
    array::Array,
    bench::{
        Bench,
        plans::{KIB, MIB, SECOND},
        served,
    },
    command::Command,
};

fn plan() -> CloudPlan {
    let steady = |per_s: f64| LimitPlan { per_s, burst_per_s: per_s, credits: 0, start_share: 1.0, window_ns: 0 };
    let volume = |name: &str| CloudVolumePlan {
        name: name.to_owned(),
        bytes: 64 * MIB,
        operations: LimitPlan { burst_per_s: 1000.0, credits: 2700, ..steady(100.0) },
        transfer: steady(1e8),
        accounting: AccountingPlan { unit_bytes: 256 * KIB, merges: true, whole_units: false },
        latency: LatencyPlan { read_ns: 500_000, write_ns: 500_000, flush_ns: 0, varying_share: 0.0 },
        snapshot: None,
    };
    CloudPlan { seed: 1, volumes: vec![volume("v01"), volume("v02")], machine: None }
}

fn bench(name: &str) -> Bench<Cloud> {
    Bench::new(name, |folder| {
        let served = served(ModelPlan::Cloud(plan()), folder, None);
        Cloud::open(&served, &plan(), served.store_folder().unwrap()).unwrap()
    })
}

#[test]
fn bytes_are_kept_apart_and_there_after_a_restart() {
    let mut bench = bench("cloud-bytes");
    bench.writes(0, 63 * MIB + 512, &[7; 8192]);
    bench.writes(1, 63 * MIB, &[9; 4096]);
    bench.array.snapshot("before").unwrap();
    bench.writes(0, 63 * MIB + 512, &[8; 512]);
    bench.array.revert("before").unwrap();
    let again = bench.again(|folder| {
        let served = served(ModelPlan::Cloud(plan()), folder, None);
        Cloud::open(&served, &plan(), served.store_folder().unwrap()).unwrap()
    });
    let mut array = again;
    let mut bytes = [0; 8192];
    array.array.read(0, 63 * MIB + 512, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 8192]);
    array.array.read(1, 63 * MIB, &mut bytes[..4096]).unwrap();
    assert_eq!(bytes[..4096], [9; 4096]);
    assert!(array.array.obey(&Command::FailPath {}, true).is_err());
}

#[test]
fn the_end_of_credits_is_told_once_when_the_formula_says_and_that_there_are_some_again() {
    let mut bench = bench("cloud-credits");
    // 2,700 credits at 1,000 - 100 a second last 3 s, of which 3,000 I/Os are.
    for tag in 0..4000_u32 {
        let request = Request {
            op: Op::Read,
            volume: 0,
            offset_bytes: u64::from(tag % 7) * MIB,
            length_bytes: 8192,
            buffer: 0,
            tag,
        };
        bench.array.model().submit(0, &request);
    }
    let (told, _) = bench.turns(2);
    assert_eq!(told, Vec::<String>::new());
    let (told, _) = bench.turns(2);
    assert_eq!(told, ["v01: burst credits of IOPS are used up: 100 IOPS from now on"]);
    let gate = bench.array.counted()["gates"][0].clone();
    assert_eq!(gate["name"], "v01");
    assert!(gate["iops"]["exceeded_ns"].as_u64().unwrap() > 3 * SECOND);
    // The rest is through after ten seconds more, and 5 % are there after another 1.35 s.
    let (told, _) = bench.turns(12);
    assert_eq!(told, ["v01: has burst credits of IOPS again"]);
}
