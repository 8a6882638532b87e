//! A client that says what it likes, and servers of disks in memory for it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use assay_disk_server::{Answer, Blocks, Loops, Memory, Op};
use assay_nbd::{Config, Export, Server};

pub(crate) const EXPORT_BYTES: u64 = 4 << 20;

/// Disks in memory that hand on the lines about clients, and count flushes.
pub(crate) struct Disks {
    pub(crate) memory: [Memory; 2],
    notes: Mutex<mpsc::Sender<String>>,
    /// What a write or a read of the second disk fails with.
    pub(crate) fails_with: Option<i32>,
    pub(crate) flushes: Mutex<u32>,
}

impl Blocks for Disks {
    fn begin(&self, volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer) {
        if matches!(op, Op::Flush | Op::Write { durable: true, .. }) {
            *self.flushes.lock().unwrap() += 1;
        }
        match self.fails_with {
            Some(number) if volume == 1 => answer(Err(number)),
            _ => self.memory[usize::from(volume)].begin(volume, op, at_bytes, bytes, answer),
        }
    }

    fn note(&self, line: String) {
        let _ = self.notes.lock().unwrap().send(line);
    }
}

pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) disks: Arc<Disks>,
    pub(crate) notes: mpsc::Receiver<String>,
}

/// Serves two disks of zeroes.
pub(crate) fn serve(fails_with: Option<i32>) -> Served {
    let (tell, notes) = mpsc::channel();
    let memory = [(); 2].map(|()| Memory::zeroes(EXPORT_BYTES));
    let disks = Arc::new(Disks { memory, notes: Mutex::new(tell), fails_with, flushes: Mutex::new(0) });
    let export = |volume: u16, name: &str| Export { name: name.into(), volume, bytes: EXPORT_BYTES };
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let config = Config { exports: vec![export(0, "data01"), export(1, "log01")], addresses };
    let loops = Loops::start(1, || {}).unwrap();
    let server = Server::start(config, Arc::clone(&disks) as Arc<dyn Blocks>, loops).unwrap();
    Served { server, disks, notes }
}

pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const WRITE_ZEROES: u16 = 6;
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    is_structured: bool,
}

impl Client {
    /// Connects and takes the greeting.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut client = Self { stream, is_structured: false };
        assert_eq!(client.take(18), [b"NBDMAGICIHAVEOPT", &[0, 3][..]].concat());
        client
    }

    /// Connects and is served an export.
    pub(crate) fn of(address: SocketAddr, name: &str, is_structured: bool) -> Self {
        let mut client = Self::connect(address);
        client.send(&[0, 0, 0, 3]);
        if is_structured {
            client.option(8, &[]);
            assert_eq!(client.option_reply(), (1, Vec::new()));
            client.is_structured = true;
        }
        client.option(7, &asked(name, &[]));
        assert_eq!(client.option_reply().0, 3);
        assert_eq!(client.option_reply(), (1, Vec::new()));
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn option(&mut self, option: u32, data: &[u8]) {
        let header = [&b"IHAVEOPT"[..], &option.to_be_bytes(), &(data.len() as u32).to_be_bytes()].concat();
        self.send(&[&header[..], data].concat());
    }

    /// Kind and data of a reply to an option.
    pub(crate) fn option_reply(&mut self) -> (u32, Vec<u8>) {
        let header = self.take(20);
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        let length = number(16) as usize;
        (number(12), self.take(length))
    }

    pub(crate) fn request(&mut self, command: u16, flags: u16, at_bytes: u64, bytes: u32, data: &[u8]) {
        self.send(&[&request(command, flags, at_bytes, bytes)[..], data].concat());
    }

    /// The error of a reply, and the bytes that were read.
    pub(crate) fn reply(&mut self, read_bytes: usize) -> (u32, Vec<u8>) {
        let magic = self.take(4);
        if magic == [0x67, 0x44, 0x66, 0x98] {
            let rest = self.take(12);
            let error = u32::from_be_bytes(rest[..4].try_into().unwrap());
            let is_read = error == 0 && read_bytes > 0;
            return (error, if is_read { self.take(read_bytes) } else { Vec::new() });
        }
        assert!(self.is_structured && magic == [0x66, 0x8e, 0x33, 0xef]);
        let rest = self.take(16);
        assert_eq!(rest[..2], [0, 1], "each reply is whole");
        let data = self.take(u32::from_be_bytes(rest[12..].try_into().unwrap()) as usize);
        match rest[2..4] {
            [0, 0] => (0, Vec::new()),
            [0, 1] => (0, data[8..].to_vec()),
            _ => (u32::from_be_bytes(data[..4].try_into().unwrap()), Vec::new()),
        }
    }

    pub(crate) fn asks(&mut self, command: u16, flags: u16, at_bytes: u64, bytes: u32, data: &[u8]) -> u32 {
        self.request(command, flags, at_bytes, bytes, data);
        self.reply(0).0
    }

    pub(crate) fn reads(&mut self, at_bytes: u64, bytes: u32) -> (u32, Vec<u8>) {
        self.request(command::READ, 0, at_bytes, bytes, &[]);
        self.reply(bytes as usize)
    }

    /// Whether the server has ended the connection.
    pub(crate) fn is_ended(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }
}

pub(crate) fn asked(name: &str, infos: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.bytes());
    data.extend((infos.len() as u16).to_be_bytes());
    data.extend(infos.iter().flat_map(|info| info.to_be_bytes()));
    data
}

pub(crate) fn request(command: u16, flags: u16, at_bytes: u64, bytes: u32) -> Vec<u8> {
    let mut unit = vec![0x25, 0x60, 0x95, 0x13];
    unit.extend(flags.to_be_bytes());
    unit.extend(command.to_be_bytes());
    unit.extend(7_u64.to_be_bytes());
    unit.extend(at_bytes.to_be_bytes());
    unit.extend(bytes.to_be_bytes());
    unit
}
