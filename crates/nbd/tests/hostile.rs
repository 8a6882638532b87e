//! Clients that mean harm, or die: others go on, no byte is lost, memory is bounded, and one line says what was wrong.
//!
//! `ASSAY_FUZZ_SECONDS=600 cargo test -p assay-nbd --test hostile --release` goes on for ten minutes; `ASSAY_SEED` is the first
//! seed. A seed gives the bytes of one connection.

mod client;

use std::{
    io::Write,
    net::{Shutdown, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use client::{Client, EXPORT_BYTES, Served, asked, command, request, serve};

/// Connections without a time to fill.
const ROUNDS: u64 = 300;
/// Bytes of reads that one connection may hold.
const SESSION_MOST_BYTES: u64 = 64 << 20;

/// Waits for what another thread does soon.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

fn note(served: &Served) -> String {
    served.notes.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Numbers by a seed (PCG's multiplier).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.next() % 100 < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()]
    }
}

/// Everything that one connection sends.
fn stream(seed: u64) -> Vec<u8> {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut bytes = draw.pick(&[1_u32, 3, 3, 3, 0, 7]).to_be_bytes().to_vec();
    let mut option = |number: u32, data: &[u8]| {
        bytes.extend(b"IHAVEOPT");
        bytes.extend(number.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    };
    for _ in 0..draw.next() % 4 {
        let data = asked(draw.pick(&["log01", "", "none", "data02"]), &[3, 1, 9]);
        option(draw.pick(&[3, 5, 6, 8, 10, 11, 99]), if draw.chance(50) { &data } else { &[] });
    }
    option(7, &asked("log01", &[3]));
    for _ in 0..1 + draw.next() % 12 {
        let bytes_of = draw.pick(&[0, 1, 512, 4096, 8192, 70_000, 1 << 20, u32::MAX]);
        let at_bytes = draw.pick(&[0, 1, 4096, EXPORT_BYTES - 512, EXPORT_BYTES, u64::MAX]);
        let command = draw.pick(&[0, 0, 1, 1, 3, 4, 6, 6, 2, 5, 7, 99]);
        bytes.extend(request(command, draw.pick(&[0, 0, 0, 1, 2, 3, 4, 8, 0xffff]), at_bytes, bytes_of));
        if command == command::WRITE && !draw.chance(10) {
            bytes.extend(vec![draw.next() as u8; bytes_of.min(2 << 20) as usize]);
        }
    }
    for _ in 0..draw.next() % 3 {
        let at = draw.next() as usize % bytes.len().min(400);
        bytes[at] = draw.next() as u8;
    }
    if draw.chance(30) {
        bytes.truncate(draw.next() as usize % bytes.len());
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
        let _ = std::io::copy(&mut std::io::Read::take(&one, 64 << 20), &mut std::io::sink());
    }
}

#[test]
fn bytes_that_a_seed_draws_end_their_own_connection_at_most() {
    let first: u64 = std::env::var("ASSAY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let seconds: Option<u64> = std::env::var("ASSAY_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let served = serve(None);
    let address = served.server.addresses()[0];
    served.disks.memory[0].0.lock().unwrap().fill(9);
    let begun = Instant::now();
    let mut seed = first;
    loop {
        for _ in 0..20 {
            attack(address, seed);
            seed += 1;
        }
        let mut good = Client::of(address, "data01", seed.is_multiple_of(2));
        assert_eq!(good.reads(seed % 8000 * 512, 8192), (0, vec![9; 8192]), "before seed {seed}");
        if seconds.map_or(seed >= first + ROUNDS, |seconds| begun.elapsed().as_secs() >= seconds) {
            break;
        }
    }
    until("connections end and give their memory back", || {
        served.server.held_bytes() == 0 && served.server.in_use().is_empty()
    });
    assert!(served.disks.memory[0].0.lock().unwrap().iter().all(|byte| *byte == 9), "seeds {first} to {seed}");
    if seconds.is_some() {
        let _ = writeln!(std::io::stderr(), "seeds {first} to {}: {} connections", seed - 1, seed - first);
    }
}

#[test]
fn each_way_to_break_the_protocol_is_told_in_one_line_however_often_it_is_tried() {
    let served = serve(None);
    let address = served.server.addresses()[0];
    for _ in 0..20 {
        let mut flags = Client::connect(address);
        flags.send(&[0, 0, 0, 9]);
        let mut option = Client::connect(address);
        option.send(b"\0\0\0\x03GET / HTTP/1.1\r\n");
        let mut long = Client::connect(address);
        long.send(b"\0\0\0\x03IHAVEOPT\0\0\0\x03\xff\xff\xff\xff");
        let mut none = Client::connect(address);
        none.send(&[0, 0, 0, 3]);
        none.option(1, b"other");
        let mut write = Client::of(address, "data01", false);
        write.request(command::WRITE, 0, 0, (32 << 20) + 1, &[]);
        let mut bent = Client::of(address, "data01", false);
        bent.send(&[0; 28]);
        for client in [flags, option, long, none, write, bent].iter_mut() {
            assert!(client.is_ended());
        }
    }
    let mut lines: Vec<String> = (0..6).map(|_| note(&served)).collect();
    lines.sort();
    let wanted = [
        "NBD: 127.0.0.1: its connection was ended: a request does not begin as one",
        "NBD: 127.0.0.1: its connection was ended: a write is longer than 32 MiB",
        "NBD: 127.0.0.1: its connection was ended: an option does not begin as one",
        "NBD: 127.0.0.1: its connection was ended: an option is longer than 16 KiB",
        "NBD: 127.0.0.1: its connection was ended: it sets flags that there are not",
        "NBD: 127.0.0.1: refused: it asks for an export that there is not",
    ];
    assert_eq!(lines, wanted);
    assert!(served.notes.try_recv().is_err());
}

#[test]
fn clients_that_take_no_replies_hold_bounded_memory_and_leave_others_theirs() {
    let served = serve(None);
    let address = served.server.addresses()[0];
    let mut slow = Client::of(address, "log01", false);
    // 100 reads of 4 MiB, none of which is taken.
    for _ in 0..100 {
        slow.request(command::READ, 0, 0, EXPORT_BYTES as u32, &[]);
    }
    until("the slow client holds what it may", || served.server.held_bytes() > SESSION_MOST_BYTES - (5 << 20));
    let mut good = Client::of(address, "data01", false);
    for _ in 0..100 {
        assert_eq!(good.reads(0, 8192).0, 0);
        assert!(served.server.held_bytes() <= SESSION_MOST_BYTES + 8192);
    }
    drop(slow);
    until("the memory is given back", || served.server.held_bytes() == 0);
}

#[test]
fn a_client_that_dies_in_any_phase_leaves_its_disk_and_the_others_alone() {
    let served = serve(None);
    let address = served.server.addresses()[0];
    served.disks.memory[0].0.lock().unwrap().fill(9);
    let mut good = Client::of(address, "data01", false);
    for _ in 0..20 {
        let _ = Client::connect(address).stream.write_all(&[0, 0]);
        let mut negotiates = Client::connect(address);
        negotiates.send(&[0, 0, 0, 3]);
        negotiates.option(3, &[]);
        // A read whose reply is not taken, half of a request, and a write of which a half comes.
        Client::of(address, "data01", false).request(command::READ, 0, 0, 2 << 20, &[]);
        Client::of(address, "data01", false).send(&request(command::READ, 0, 0, 512)[..20]);
        Client::of(address, "data01", false).request(command::WRITE, 0, 0, 8192, &[1; 4096]);
        assert_eq!(good.reads(0, 8192), (0, vec![9; 8192]));
    }
    drop(good);
    until("all have gone", || served.server.in_use().is_empty() && served.server.held_bytes() == 0);
    assert!(served.disks.memory[0].0.lock().unwrap().iter().all(|byte| *byte == 9));
}
