//! Units that a seed draws, against a server whose other disk must stay as it is.
//!
//! `ASSAY_FUZZ_SECONDS=600 cargo test -p assay-iscsi --test fuzzed --release` goes on for ten minutes; `ASSAY_SEED` is the first
//! seed. A seed gives the units of one connection.

mod initiator;

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use assay_disk_server::{Answer, Blocks, Loops, Memory, Op};
use assay_iscsi::{Access, Config, Disk, Server};
use initiator::{DISK_BYTES, TARGET};

const KEPT: &str = "iqn.2026-11.invalid.assay:test-kept";
/// Connections without a time to fill.
const ROUNDS: u64 = 300;

/// A disk that is attacked, and one that is not.
struct Two([Memory; 2]);

impl Blocks for Two {
    fn begin(&self, volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer) {
        self.0[usize::from(volume)].begin(volume, op, at_bytes, bytes, answer);
    }
}

/// Numbers by a seed (PCG's multiplier).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, most: u32) -> u32 {
        self.next() % most
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }
}

/// Texts of a login that would be let in, and now and then one that is bent.
fn texts(draw: &mut Draw) -> Vec<u8> {
    let target = format!("TargetName={TARGET}");
    let mut keys = vec!["InitiatorName=iqn.2026-11.test:fuzz", target.as_str()];
    let more = [
        "HeaderDigest=None",
        "DataDigest=CRC32C,None",
        "InitialR2T=No",
        "ImmediateData=Yes",
        "MaxBurstLength=512",
        "FirstBurstLength=16777215",
        "MaxRecvDataSegmentLength=512",
        "MaxOutstandingR2T=65535",
        "SessionType=Discovery",
        "AuthMethod=CHAP,None",
        "CHAP_A=5",
        "ErrorRecoveryLevel=2",
        "MaxConnections=0",
        "X-other=1",
    ];
    for _ in 0..draw.below(5) {
        keys.push(draw.pick(&more));
    }
    let mut bytes: Vec<u8> = keys.iter().flat_map(|key| key.bytes().chain([0])).collect();
    if draw.chance(20) {
        let at = draw.below(bytes.len() as u32) as usize;
        bytes[at] = draw.next() as u8;
    }
    bytes
}

/// A unit after a login: of a kind that there is, with fields that are right, wrong or any.
fn unit(draw: &mut Draw, command_number: &mut u32) -> Vec<u8> {
    let opcode = draw.pick(&[0x01, 0x01, 0x01, 0x01, 0x05, 0x05, 0x00, 0x02, 0x04, 0x06, 0x10, 0x03, 0x41, 0x42]);
    let mut header = [0; 48];
    header[0] = opcode;
    header[1] = draw.pick(&[0x80, 0xa0, 0xc0, 0xe0, 0x20, 0x40, 0x00]) | (draw.below(4) as u8);
    header[16..20].copy_from_slice(&draw.below(6).to_be_bytes());
    header[20..24].copy_from_slice(&draw.pick(&[0, 512, 8192, 65_536, 8 << 20, u32::MAX]).to_be_bytes());
    header[24..28].copy_from_slice(&command_number.to_be_bytes());
    if opcode & 0x40 == 0 && opcode != 0x05 {
        *command_number = command_number.wrapping_add(1);
    }
    if opcode & 0x3f == 0x01 {
        let codes = [
            0x00, 0x03, 0x08, 0x0a, 0x12, 0x15, 0x1a, 0x25, 0x28, 0x2a, 0x2f, 0x35, 0x41, 0x42, 0x5a, 0x5e, 0x5f, 0x83,
            0x84, 0x88, 0x89, 0x8a, 0x8b, 0x8f, 0x93, 0x9e, 0xa0, 0xa3,
        ];
        header[32] = draw.pick(&codes);
        header[33] = draw.pick(&[0, 0x08, 0x02, 0x1f, 0x10]);
        for byte in &mut header[34..48] {
            *byte = if draw.chance(25) { draw.next() as u8 } else { 0 };
        }
    } else if opcode == 0x05 {
        header[36..40].copy_from_slice(&draw.below(3).to_be_bytes());
        header[40..44].copy_from_slice(&draw.pick(&[0, 512, 4096, u32::MAX - 3]).to_be_bytes());
    }
    let data_bytes = draw.pick(&[0, 0, 0, 1, 24, 512, 4096, 8192, 70_000]);
    header[5..8].copy_from_slice(&(data_bytes as u32).to_be_bytes()[1..]);
    if draw.chance(5) {
        header[4] = draw.next() as u8;
    }
    if draw.chance(3) {
        header[5] = draw.next() as u8;
    }
    for _ in 0..draw.below(3) {
        let at = draw.below(48) as usize;
        if at != 4 && at != 5 {
            header[at] = draw.next() as u8;
        }
    }
    let mut bytes = header.to_vec();
    bytes.extend((0..usize::next_multiple_of(data_bytes, 4)).map(|at| (at as u8) ^ header[16]));
    bytes
}

/// Everything that one connection sends.
fn stream(seed: u64) -> Vec<u8> {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let texts = texts(&mut draw);
    let mut login = [0; 48];
    (login[0], login[1]) = (0x43, draw.pick(&[0x87, 0x87, 0x87, 0x87, 0x81, 0x04, 0x44, 0x00]));
    login[8] = 0x80;
    login[24..28].copy_from_slice(&1u32.to_be_bytes());
    login[5..8].copy_from_slice(&(texts.len() as u32).to_be_bytes()[1..]);
    if draw.chance(10) {
        login[draw.below(48) as usize] = draw.next() as u8;
    }
    let mut bytes = [&login[..], &texts].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let mut number = 1;
    for _ in 0..1 + draw.below(12) {
        bytes.extend(unit(&mut draw, &mut number));
    }
    if draw.chance(30) {
        bytes.truncate(draw.below(bytes.len() as u32) as usize);
    }
    bytes
}

fn attack(address: SocketAddr, seed: u64) {
    let Ok(mut one) = TcpStream::connect(address) else { return };
    let _ = one.set_write_timeout(Some(Duration::from_secs(5)));
    let _ = one.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = one.write_all(&stream(seed));
    let _ = one.shutdown(Shutdown::Write);
    if !seed.is_multiple_of(4) {
        let _ = std::io::copy(&mut (&one).take(32 << 20), &mut std::io::sink());
    }
}

#[test]
fn units_that_a_seed_draws_end_their_own_session_at_most() {
    let first: u64 = std::env::var("ASSAY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let seconds: Option<u64> = std::env::var("ASSAY_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let disk = |target: &str, volume: u16| Disk {
        target: target.into(),
        volume,
        bytes: DISK_BYTES,
        serial: volume.to_string(),
        product: "MEMORY".into(),
    };
    let config = Config {
        disks: vec![disk(TARGET, 0), disk(KEPT, 1)],
        portals: vec!["127.0.0.1:0".parse().unwrap()],
        group: None,
        access: Access::default(),
    };
    let blocks = Arc::new(Two([0, 9].map(|byte| Memory(Mutex::new(vec![byte; DISK_BYTES as usize])))));
    let server =
        Server::start(config, Arc::clone(&blocks) as Arc<dyn Blocks>, Loops::start(1, || {}).unwrap()).unwrap();
    let address = server.addresses()[0];
    let begun = Instant::now();
    let mut seed = first;
    loop {
        for _ in 0..20 {
            attack(address, seed);
            seed += 1;
        }
        let mut good = initiator::Initiator::connect(address);
        let target = format!("TargetName={KEPT}");
        let answer = good.ask_to_log_in(0x87, &["InitiatorName=iqn.2026-11.test:good", &target]);
        assert_eq!(answer.header[36], 0, "before seed {seed}");
        let mut good = good.awake();
        good.command(0xc0, &initiator::ten(0x28, (seed % 8000) as u32, 16), 8192, &[]);
        assert_eq!(good.take().expect("an answer").data, [9; 8192], "before seed {seed}");
        let is_over = seconds.map_or(seed >= first + ROUNDS, |seconds| begun.elapsed().as_secs() >= seconds);
        if is_over {
            break;
        }
    }
    while server.held_bytes() > 0 || server.sessions().iter().any(|session| session.disk == 0) {
        assert!(begun.elapsed() < Duration::from_secs(seconds.unwrap_or(0) + 120), "seeds {first} to {seed}");
        std::thread::yield_now();
    }
    assert!(blocks.0[1].0.lock().unwrap().iter().all(|byte| *byte == 9), "seeds {first} to {seed}");
    if seconds.is_some() {
        let _ = writeln!(std::io::stderr(), "seeds {first} to {}: {} connections", seed - 1, seed - first);
    }
}
