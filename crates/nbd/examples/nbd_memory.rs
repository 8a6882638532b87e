//! An export in memory, to measure the server alone: `nbd_memory ADDRESS MIB`.

use std::{io::Write, sync::Arc};

use assay_disk_server::{Loops, Memory};
use assay_nbd::{Config, Export, Server};

fn main() {
    let mut words = std::env::args().skip(1);
    let address = words.next().and_then(|word| word.parse().ok()).expect("an address");
    let mib: u64 = words.next().and_then(|word| word.parse().ok()).expect("a size in MiB");
    let export = Export { name: "data".into(), volume: 0, bytes: mib << 20 };
    let loops = Loops::start(1, || {}).expect("threads");
    let config = Config { exports: vec![export], addresses: vec![address] };
    let server = Server::start(config, Arc::new(Memory::zeroes(mib << 20)), loops).expect("a server");
    let _ = writeln!(std::io::stdout(), "{:?}", server.addresses());
    loop {
        std::thread::park();
    }
}
