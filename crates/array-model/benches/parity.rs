//! Bytes of data per second on one core: encoding, rebuilding two lost columns, small writes. Compared with loops that one
//! would write first, and with `reed-solomon-simd` (AVX2 where the processor has it). Chunks of 64 KiB, in the cache.
//!
//! `cargo bench -p assay-array-model --bench parity`; the output is kept in `benches/results/parity.txt`.

use std::{hint::black_box, time::Duration};

use assay_array_model::{Code, RaidPolicy};
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

const CHUNK_BYTES: usize = 64 << 10;

const WRITE_BYTES: usize = 8 << 10;

/// Policy, columns, chunks of parity.
const SHAPES: [(RaidPolicy, u32, usize); 7] = [
    (RaidPolicy::Raid5, 10, 1),
    (RaidPolicy::Raid5, 14, 1),
    (RaidPolicy::Raid6, 9, 2),
    (RaidPolicy::Raid6, 14, 2),
    (RaidPolicy::Dp, 9, 2),
    (RaidPolicy::Dp, 14, 2),
    (RaidPolicy::Dp, 20, 2),
];

fn chunks(count: usize) -> Vec<Vec<u8>> {
    let byte = |chunk: usize, index: usize| ((chunk * CHUNK_BYTES + index) as u32).wrapping_mul(0x9E37_79B1) >> 24;
    (0..count).map(|chunk| (0..CHUNK_BYTES).map(|index| byte(chunk, index) as u8).collect()).collect()
}

fn shared(chunks: &[Vec<u8>]) -> Vec<&[u8]> {
    chunks.iter().map(Vec::as_slice).collect()
}

fn exclusive(chunks: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    chunks.iter_mut().map(Vec::as_mut_slice).collect()
}

/// The sum, column by column.
fn plain_xor(data: &[&[u8]], p: &mut [u8]) {
    p.fill(0);
    for column in data {
        for (p, x) in p.iter_mut().zip(*column) {
            *p ^= x;
        }
    }
}

/// P and Q, column by column, with a table of products for each.
fn plain_p_and_q(data: &[&[u8]], tables: &[[u8; 256]], p: &mut [u8], q: &mut [u8]) {
    p.fill(0);
    q.fill(0);
    for (column, table) in data.iter().zip(tables) {
        for ((p, q), x) in p.iter_mut().zip(q.iter_mut()).zip(*column) {
            *p ^= x;
            *q ^= table[usize::from(*x)];
        }
    }
}

/// Products of every byte with 2^column, by the code itself: Q of a row in which one column alone is not zero.
fn tables(columns: u32) -> Vec<[u8; 256]> {
    let code = Code::new(RaidPolicy::Raid6, columns, 256).expect("a width that RAID 6 bears");
    let bytes: Vec<u8> = (0..=255).collect();
    let table = |column| {
        let (mut p, mut q) = ([0; 256], [0; 256]);
        code.update(&mut [&mut p, &mut q], column, 0, &[0; 256], &bytes).expect("a column of the row");
        q
    };
    (0..columns).map(table).collect()
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, data_bytes: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::BytesDecimal(data_bytes as u64));
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(40);
    group
}

fn title(verb: &str, (policy, columns, parity): (RaidPolicy, u32, usize)) -> String {
    format!("{verb}, RAID {} {columns}+{parity}", policy.name())
}

fn encode(criterion: &mut Criterion) {
    for shape in SHAPES {
        let (policy, columns, parity_chunks) = shape;
        let code = Code::new(policy, columns, CHUNK_BYTES as u64).expect("a width that the policy bears");
        let data = chunks(columns as usize);
        let data = shared(&data);
        let mut parity = chunks(parity_chunks);
        let mut group = group(criterion, &title("encode", shape), data.len() * CHUNK_BYTES);
        group.bench_function("assay", |bencher| {
            let mut parity = exclusive(&mut parity);
            bencher.iter(|| code.encode(black_box(&data), black_box(&mut parity)).expect("whole chunks"));
        });
        if policy == RaidPolicy::Raid6 {
            let tables = tables(columns);
            group.bench_function("plain loops, table", |bencher| {
                let [p, q] = &mut parity[..] else { unreachable!("two chunks of parity") };
                bencher.iter(|| plain_p_and_q(black_box(&data), &tables, black_box(p), black_box(q)));
            });
        } else {
            let name = if parity_chunks == 1 { "plain loop" } else { "plain loop, row parity alone" };
            group.bench_function(name, |bencher| {
                bencher.iter(|| plain_xor(black_box(&data), black_box(&mut parity[0])));
            });
        }
        let mut encoder = ReedSolomonEncoder::new(data.len(), parity_chunks, CHUNK_BYTES).expect("a width it bears");
        group.bench_function("reed-solomon-simd", |bencher| {
            bencher.iter(|| {
                for column in black_box(&data) {
                    encoder.add_original_shard(column).expect("a whole chunk");
                }
                black_box(encoder.encode().expect("all chunks").recovery(0));
            });
        });
    }
}

fn rebuild(criterion: &mut Criterion) {
    for shape in SHAPES.into_iter().filter(|shape| shape.2 == 2) {
        let (policy, columns, _) = shape;
        let code = Code::new(policy, columns, CHUNK_BYTES as u64).expect("a width that the policy bears");
        let data_chunks = columns as usize;
        let mut row = chunks(data_chunks + 2);
        let (data, parity) = row.split_at_mut(data_chunks);
        code.encode(&shared(data), &mut exclusive(parity)).expect("whole chunks");
        let mut group = group(criterion, &title("rebuild two columns", shape), data_chunks * CHUNK_BYTES);
        group.bench_function("assay", |bencher| {
            let mut row = exclusive(&mut row);
            bencher.iter(|| code.rebuild(black_box(&mut row), &[2, 5]).expect("two are borne"));
        });

        let data = &row[..data_chunks];
        let parity = reed_solomon_simd::encode(data_chunks, 2, data).expect("a width it bears");
        let mut decoder = ReedSolomonDecoder::new(data_chunks, 2, CHUNK_BYTES).expect("a width it bears");
        group.bench_function("reed-solomon-simd", |bencher| {
            bencher.iter(|| {
                for (index, column) in black_box(data).iter().enumerate().filter(|(index, _)| ![2, 5].contains(index)) {
                    decoder.add_original_shard(index, column).expect("a whole chunk");
                }
                for (index, chunk) in parity.iter().enumerate() {
                    decoder.add_recovery_shard(index, chunk).expect("a whole chunk");
                }
                black_box(decoder.decode().expect("enough chunks").restored_original(2));
            });
        });
    }
}

fn update(criterion: &mut Criterion) {
    for shape in SHAPES.into_iter().filter(|shape| shape.1 <= 10) {
        let (policy, columns, parity_chunks) = shape;
        let code = Code::new(policy, columns, CHUNK_BYTES as u64).expect("a width that the policy bears");
        let mut parity = chunks(parity_chunks);
        let bytes = chunks(2);
        let (old, new) = (&bytes[0][..WRITE_BYTES], &bytes[1][..WRITE_BYTES]);
        let mut group = group(criterion, &title("write of 8 KiB", shape), WRITE_BYTES);
        let mut parity = exclusive(&mut parity);
        group.bench_function("assay", |bencher| {
            bencher.iter(|| code.update(black_box(&mut parity), 7, 20_480, black_box(old), new).expect("in the chunk"));
        });
        if parity_chunks == 1 {
            group.bench_function("plain loop", |bencher| {
                bencher.iter(|| {
                    let range = 20_480..20_480 + WRITE_BYTES;
                    for ((p, old), new) in black_box(&mut parity[0][range]).iter_mut().zip(black_box(old)).zip(new) {
                        *p ^= old ^ new;
                    }
                });
            });
        }
    }
}

criterion_group!(benches, encode, rebuild, update);
criterion_main!(benches);
