//! A server over real sockets, and an initiator that says what it likes.

mod memory;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use assay_iscsi::{Access, Blocks, Config, Disk, Secret, Server};
use memory::Memory;

const DISK_BYTES: u64 = 4 << 20;
const TARGET: &str = "iqn.2026-11.invalid.assay:test-data";

fn serve(access: Access, portals: usize, has_group: bool) -> (Server, Arc<Memory>) {
    let disk = Disk {
        target: TARGET.into(),
        volume: 0,
        bytes: DISK_BYTES,
        serial: "0123456789".into(),
        product: "MEMORY".into(),
    };
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let memory = Arc::new(Memory(Mutex::new(vec![0; DISK_BYTES as usize])));
    let config =
        Config { disks: vec![disk], portals: vec![any; portals], group: has_group.then_some(any), access, threads: 2 };
    (Server::start(config, Arc::clone(&memory) as Arc<dyn Blocks>).unwrap(), memory)
}

fn open() -> (Server, Arc<Memory>) {
    serve(Access::default(), 1, false)
}

/// A unit as it came: its header and its data.
struct Unit {
    header: [u8; 48],
    data: Vec<u8>,
}

impl Unit {
    fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.header[at..at + 4].try_into().unwrap())
    }
}

struct Initiator {
    stream: TcpStream,
    command_number: u32,
    tag: u32,
}

impl Initiator {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, command_number: 1, tag: 0 }
    }

    fn log_in(address: SocketAddr, more: &[&str]) -> Self {
        let mut own = Self::connect(address);
        let target = format!("TargetName={TARGET}");
        let keys = [&["InitiatorName=iqn.2026-11.test:one", target.as_str()], more].concat();
        let answer = own.ask_to_log_in(0x87, &keys);
        assert_eq!(answer.header[36], 0, "{:02x?}", &answer.header[36..38]);
        own
    }

    fn ask_to_log_in(&mut self, flags: u8, keys: &[&str]) -> Unit {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x43, flags);
        header[8..14].copy_from_slice(&[0x80, 0, 0, 0, 0, 1]);
        header[24..28].copy_from_slice(&self.command_number.to_be_bytes());
        let data: Vec<u8> = keys.iter().flat_map(|key| key.bytes().chain([0])).collect();
        self.send(header, &data);
        self.take().expect("an answer to the login")
    }

    fn send(&mut self, mut header: [u8; 48], data: &[u8]) {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let _ = self.stream.write_all(&bytes);
    }

    /// The next unit; None if the connection has ended.
    fn take(&mut self) -> Option<Unit> {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; length.next_multiple_of(4)];
        self.stream.read_exact(&mut data).ok()?;
        data.truncate(length);
        Some(Unit { header, data })
    }

    fn command(&mut self, flags: u8, cdb: &[u8], expected_bytes: u32, data: &[u8]) -> u32 {
        self.tag += 1;
        let mut header = [0; 48];
        (header[0], header[1]) = (0x01, flags);
        header[16..20].copy_from_slice(&self.tag.to_be_bytes());
        header[20..24].copy_from_slice(&expected_bytes.to_be_bytes());
        header[24..28].copy_from_slice(&self.command_number.to_be_bytes());
        header[32..32 + cdb.len()].copy_from_slice(cdb);
        self.command_number += 1;
        self.send(header, data);
        self.tag
    }

    /// Data of a write that were asked for, or come by themselves.
    fn data_out(&mut self, tag: u32, transfer: u32, number: u32, at: u32, data: &[u8], is_last: bool) {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x05, if is_last { 0x80 } else { 0 });
        header[16..20].copy_from_slice(&tag.to_be_bytes());
        header[20..24].copy_from_slice(&transfer.to_be_bytes());
        header[36..40].copy_from_slice(&number.to_be_bytes());
        header[40..44].copy_from_slice(&at.to_be_bytes());
        self.send(header, data);
    }

    /// Passes over the attention that a new session gets.
    fn awake(mut self) -> Self {
        self.command(0x80, &[0; 6], 0, &[]);
        assert_eq!(self.take().unwrap().header[3], 2);
        self
    }
}

fn ten(code: u8, first: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = code;
    cdb[2..6].copy_from_slice(&first.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

#[test]
fn what_is_written_comes_back_whether_it_came_with_the_command_or_was_asked_for() {
    let (server, _) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &["MaxBurstLength=65536", "InitialR2T=Yes"]).awake();
    let data: Vec<u8> = (0..200 * 512).map(|at| (at % 251) as u8).collect();
    // The first 8 KiB come with the command, the rest in the parts that the target asks for.
    let tag = one.command(0xa0, &ten(0x2a, 8, 200), data.len() as u32, &data[..8192]);
    loop {
        let unit = one.take().unwrap();
        if unit.opcode() == 0x21 {
            assert_eq!((unit.header[3], unit.u32(44)), (0, 0));
            break;
        }
        assert_eq!(unit.opcode(), 0x31);
        let (at, bytes) = (unit.u32(40) as usize, unit.u32(44) as usize);
        let half = at + bytes / 2;
        one.data_out(tag, unit.u32(20), 0, at as u32, &data[at..half], false);
        one.data_out(tag, unit.u32(20), 1, half as u32, &data[half..at + bytes], true);
    }
    one.command(0xc0, &ten(0x28, 8, 200), data.len() as u32, &[]);
    let mut found: Vec<u8> = Vec::new();
    loop {
        let unit = one.take().unwrap();
        assert_eq!((unit.opcode(), unit.u32(40) as usize), (0x25, found.len()));
        found.extend(&unit.data);
        if unit.header[1] & 1 != 0 {
            break;
        }
    }
    assert_eq!(found, data);
}

#[test]
fn data_out_of_order_end_the_command_and_not_the_session() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let tag = one.command(0xa0, &ten(0x2a, 0, 2), 1024, &[]);
    let ready = one.take().unwrap();
    one.data_out(tag, ready.u32(20), 7, 0, &[1; 1024], true);
    let answer = one.take().unwrap();
    assert_eq!((answer.opcode(), answer.header[3], answer.data[4]), (0x21, 2, 0x0b));
    one.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(one.take().unwrap().header[3], 0);
    assert!(memory.0.lock().unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn commands_without_the_data_that_they_need_fail_and_write_nothing() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut compare = [0; 16];
    (compare[0], compare[13]) = (0x89, 1);
    // The initiator says that it reads where the command writes, or sends nothing.
    for (flags, cdb) in [(0xc0, &compare[..]), (0x80, &compare), (0xc0, &ten(0x41, 0, 4)), (0xc0, &ten(0x42, 0, 24))] {
        one.command(flags, cdb, 1024, &[]);
        let answer = one.take().unwrap();
        assert_eq!((answer.opcode(), answer.header[3], answer.data[4]), (0x21, 2, 5), "{cdb:x?}");
    }
    one.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(one.take().unwrap().header[3], 0);
    assert!(memory.0.lock().unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn no_command_is_taken_before_a_login_and_none_after_a_wrong_proof() {
    let (server, _) = open();
    let mut one = Initiator::connect(server.addresses()[0]);
    one.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    assert!(one.take().is_none());

    let chap = Some(Secret { name: "dba".into(), secret: b"a secret of some length".to_vec() });
    let (server, _) = serve(Access { chap, ..Access::default() }, 1, false);
    let mut one = Initiator::connect(server.addresses()[0]);
    let target = format!("TargetName={TARGET}");
    let names = ["InitiatorName=iqn.2026-11.test:one", &target, "AuthMethod=CHAP"];
    assert_eq!(one.ask_to_log_in(0x00, &names).header[36], 0);
    assert_eq!(one.ask_to_log_in(0x00, &["CHAP_A=5"]).header[36], 0);
    let answer = one.ask_to_log_in(0x81, &["CHAP_N=dba", "CHAP_R=0x00112233445566778899aabbccddeeff"]);
    assert_eq!(answer.header[36..38], [2, 1]);
    assert!(one.take().is_none());
}

#[test]
fn a_group_sends_logins_to_portals_that_are_there() {
    let (server, _) = serve(Access::default(), 2, true);
    let addresses = server.addresses().to_vec();
    let sent_to = || {
        let mut one = Initiator::connect(addresses[2]);
        let target = format!("TargetName={TARGET}");
        let answer = one.ask_to_log_in(0x87, &["InitiatorName=iqn.2026-11.test:one", &target]);
        assert_eq!(answer.header[36..38], [1, 1]);
        String::from_utf8(answer.data).unwrap()
    };
    server.set_portal(0, false);
    assert_eq!(sent_to(), format!("TargetAddress={},1\0", addresses[1]));
    server.set_portal(0, true);
    server.set_portal(1, false);
    assert_eq!(sent_to(), format!("TargetAddress={},1\0", addresses[0]));
}

#[test]
fn a_lost_portal_ends_its_sessions_and_takes_no_new_ones() {
    let (server, _) = serve(Access::default(), 2, false);
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    server.set_portal(0, false);
    assert!(one.take().is_none());
    let mut late = Initiator::connect(server.addresses()[0]);
    let mut byte = [0];
    assert_eq!(late.stream.read(&mut byte).unwrap_or(0), 0);
    Initiator::log_in(server.addresses()[1], &[]);
    server.set_portal(0, true);
    Initiator::log_in(server.addresses()[0], &[]);
}

#[test]
fn a_second_login_of_the_same_session_takes_the_place_of_the_first() {
    let (server, _) = open();
    let mut first = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut second = Initiator::log_in(server.addresses()[0], &[]).awake();
    assert!(first.take().is_none());
    second.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(second.take().unwrap().header[3], 0);
    assert_eq!(server.sessions().len(), 1);
}

#[test]
fn units_that_are_none_end_their_connection_alone() {
    let (server, _) = open();
    let mut good = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut seed = 7u64;
    for _ in 0..300 {
        let mut bad = Initiator::connect(server.addresses()[0]);
        let mut bytes = [0; 96];
        for byte in &mut bytes {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (seed >> 33) as u8;
        }
        let _ = bad.stream.write_all(&bytes);
        let _ = bad.stream.shutdown(std::net::Shutdown::Write);
    }
    good.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    assert_eq!(good.take().unwrap().data.len(), 512);
}

#[test]
fn units_of_any_bytes_within_a_session_end_no_other_session() {
    let (server, _) = open();
    let mut seed = 11u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for round in 0..200 {
        let mut bad = Initiator::log_in(server.addresses()[0], &[]);
        for _ in 0..4 {
            let mut header: [u8; 48] = std::array::from_fn(|_| draw());
            // Short units of known kinds reach further than random lengths would.
            header[0] = [0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x41][round % 8];
            header[4] = 0;
            header[24..28].copy_from_slice(&bad.command_number.to_be_bytes());
            bad.command_number += 1;
            let data: Vec<u8> = (0..draw() % 64).map(|_| draw()).collect();
            bad.send(header, &data);
        }
    }
    let mut good = Initiator::log_in(server.addresses()[0], &[]).awake();
    good.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(good.take().unwrap().header[3], 0);
}
