//! An initiator that says what it likes, and servers of a disk in memory for it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use assay_disk_server::{Blocks, Loops, Memory};
use assay_iscsi::{Access, Config, Disk, Server};

pub(crate) const DISK_BYTES: u64 = 4 << 20;
pub(crate) const TARGET: &str = "iqn.2026-11.invalid.assay:test-data";

pub(crate) fn serve(access: Access, portals: usize, has_group: bool) -> (Server, Arc<Memory>) {
    let disk = Disk {
        target: TARGET.into(),
        volume: 0,
        bytes: DISK_BYTES,
        serial: "0123456789".into(),
        product: "MEMORY".into(),
    };
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let memory = Arc::new(Memory::zeroes(DISK_BYTES));
    let config = Config { disks: vec![disk], portals: vec![any; portals], group: has_group.then_some(any), access };
    let loops = Loops::start(2, || {}).unwrap();
    (Server::start(config, Arc::clone(&memory) as Arc<dyn Blocks>, loops).unwrap(), memory)
}

pub(crate) fn open() -> (Server, Arc<Memory>) {
    serve(Access::default(), 1, false)
}

/// A unit as it came: its header and its data.
pub(crate) struct Unit {
    pub(crate) header: [u8; 48],
    pub(crate) data: Vec<u8>,
}

impl Unit {
    pub(crate) fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.header[at..at + 4].try_into().unwrap())
    }
}

pub(crate) struct Initiator {
    pub(crate) stream: TcpStream,
    pub(crate) command_number: u32,
    tag: u32,
    name: String,
    session: u8,
}

impl Initiator {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, command_number: 1, tag: 0, name: "one".into(), session: 1 }
    }

    /// A session of its own of an initiator of this name.
    pub(crate) fn named(address: SocketAddr, name: &str, session: u8) -> Self {
        Self { name: name.into(), session, ..Self::connect(address) }
    }

    pub(crate) fn log_in(address: SocketAddr, more: &[&str]) -> Self {
        let mut own = Self::connect(address);
        let answer = own.names_itself(more);
        assert_eq!(answer.header[36], 0, "{:02x?}", &answer.header[36..38]);
        own
    }

    /// Asks to log in to the disk in one unit.
    pub(crate) fn names_itself(&mut self, more: &[&str]) -> Unit {
        let (name, target) = (format!("InitiatorName=iqn.2026-11.test:{}", self.name), format!("TargetName={TARGET}"));
        self.ask_to_log_in(0x87, &[&[name.as_str(), target.as_str()], more].concat())
    }

    /// Logs in as real initiators do: at the group, and then where it sends them.
    pub(crate) fn through(group: SocketAddr, name: &str, session: u8) -> Self {
        let mut at = group;
        for _ in 0..4 {
            let mut own = Self::named(at, name, session);
            let answer = own.names_itself(&[]);
            match answer.header[36] {
                0 => return own.awake(),
                1 => at = sent_to(&answer),
                _ => panic!("{:02x?}", &answer.header[36..38]),
            }
        }
        panic!("sent from one portal to the next without an end");
    }

    /// Takes a request to log out, obeys it, and logs in again through the group.
    pub(crate) fn moves(mut self, group: SocketAddr) -> Self {
        let asked = self.take().expect("a request to log out");
        assert_eq!((asked.opcode(), asked.header[36]), (0x32, 1));
        self.log_out();
        Self::through(group, &self.name, self.session)
    }

    pub(crate) fn log_out(&mut self) {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x46, 0x80);
        header[24..28].copy_from_slice(&self.command_number.to_be_bytes());
        self.send(header, &[]);
        assert_eq!(self.take().unwrap().opcode(), 0x26);
        assert!(self.take().is_none(), "the connection ends after the logout");
    }

    pub(crate) fn port(&self) -> u16 {
        self.stream.peer_addr().unwrap().port()
    }

    pub(crate) fn ask_to_log_in(&mut self, flags: u8, keys: &[&str]) -> Unit {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x43, flags);
        header[8..14].copy_from_slice(&[0x80, 0, 0, 0, 0, self.session]);
        header[24..28].copy_from_slice(&self.command_number.to_be_bytes());
        let data: Vec<u8> = keys.iter().flat_map(|key| key.bytes().chain([0])).collect();
        self.send(header, &data);
        self.take().expect("an answer to the login")
    }

    pub(crate) fn send(&mut self, mut header: [u8; 48], data: &[u8]) {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let _ = self.stream.write_all(&bytes);
    }

    /// The next unit; None if the connection has ended.
    pub(crate) fn take(&mut self) -> Option<Unit> {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; length.next_multiple_of(4)];
        self.stream.read_exact(&mut data).ok()?;
        data.truncate(length);
        Some(Unit { header, data })
    }

    pub(crate) fn command(&mut self, flags: u8, cdb: &[u8], expected_bytes: u32, data: &[u8]) -> u32 {
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
    pub(crate) fn data_out(&mut self, tag: u32, transfer: u32, number: u32, at: u32, data: &[u8], is_last: bool) {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x05, if is_last { 0x80 } else { 0 });
        header[16..20].copy_from_slice(&tag.to_be_bytes());
        header[20..24].copy_from_slice(&transfer.to_be_bytes());
        header[36..40].copy_from_slice(&number.to_be_bytes());
        header[40..44].copy_from_slice(&at.to_be_bytes());
        self.send(header, data);
    }

    /// Passes over the attention that a new session gets.
    pub(crate) fn awake(mut self) -> Self {
        self.command(0x80, &[0; 6], 0, &[]);
        assert_eq!(self.take().unwrap().header[3], 2);
        self
    }
}

/// Address that a login's answer names.
pub(crate) fn sent_to(answer: &Unit) -> SocketAddr {
    let text = String::from_utf8(answer.data.clone()).unwrap();
    text.trim_end_matches('\0').strip_prefix("TargetAddress=").unwrap().strip_suffix(",1").unwrap().parse().unwrap()
}

pub(crate) fn ten(code: u8, first: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = code;
    cdb[2..6].copy_from_slice(&first.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}
