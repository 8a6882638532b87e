//! A disk in memory, for conformance tests: `memory ADDRESS MIB [ADDRESS]...`, each address a portal.

use std::{io::Write, sync::Arc};

use assay_disk_server::{Loops, Memory};
use assay_iscsi::{Access, Config, Disk, Server};

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
    let config = Config { disks: vec![disk], portals, group: None, access: Access::default() };
    let loops = Loops::start(1, || {}).expect("threads");
    let server = Server::start(config, Arc::new(Memory::zeroes(mib << 20)), loops).expect("a server");
    let _ = writeln!(std::io::stdout(), "{:?}", server.addresses());
    loop {
        std::thread::park();
    }
}
