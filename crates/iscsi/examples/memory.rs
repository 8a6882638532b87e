//! A disk in memory, for conformance tests: `memory ADDRESS MIB [ADDRESS]...`, each address a portal.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use assay_iscsi::{Access, Config, Disk, Server};

#[path = "../tests/memory/mod.rs"]
mod memory;

use memory::Memory;

fn main() {
    let mut words = std::env::args().skip(1);
    let first = words.next().expect("an address");
    let mib: u64 = words.next().and_then(|word| word.parse().ok()).expect("a size in MiB");
    let portals = std::iter::once(first).chain(words).map(|word| word.parse().expect("an address")).collect();
    let disk = Disk {
        target: "iqn.2026-11.assay:data".into(),
        volume: 0,
        bytes: mib << 20,
        serial: "assay-0001-data".into(),
        product: "memory".into(),
    };
    let config = Config { disks: vec![disk], portals, group: None, access: Access::default(), threads: 1 };
    let server = Server::start(config, Arc::new(Memory(Mutex::new(vec![0; (mib << 20) as usize])))).expect("a server");
    let _ = writeln!(std::io::stdout(), "{:?}", server.addresses());
    loop {
        std::thread::park();
    }
}
