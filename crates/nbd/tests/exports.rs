//! Exports as a client uses them: their bytes, their failures, and how connections end.

mod client;

use client::{Client, EXPORT_BYTES, command, serve};

const DURABLE: u16 = 1;
const NO_HOLE: u16 = 2;
const WHOLE: u16 = 4;
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;

#[test]
fn bytes_are_read_as_they_were_written_whatever_replies_were_agreed() {
    let served = serve(None);
    let address = served.server.addresses()[0];
    let content: Vec<u8> = (0..3 << 20).map(|at: u32| (at / 7) as u8).collect();
    let mut simple = Client::of(address, "data01", false);
    // More than one I/O of the store, and not in whole sectors.
    assert_eq!(simple.asks(command::WRITE, 0, 1001, content.len() as u32, &content), 0);
    let mut structured = Client::of(address, "data01", true);
    for client in [&mut simple, &mut structured] {
        assert_eq!(client.reads(1001, content.len() as u32), (0, content.clone()));
        assert_eq!(client.reads(0, 1001), (0, vec![0; 1001]));
        assert_eq!(client.reads(0, 0), (0, Vec::new()));
    }
    assert_eq!(served.server.in_use(), [0]);
    assert!(served.disks.memory[1].0.lock().unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn what_is_trimmed_or_made_zero_reads_as_zeroes_and_the_rest_stays() {
    let served = serve(None);
    let mut client = Client::of(served.server.addresses()[0], "data01", true);
    for (command, flags) in [
        (command::TRIM, 0),
        (command::TRIM, DURABLE),
        (command::WRITE_ZEROES, 0),
        (command::WRITE_ZEROES, NO_HOLE),
        (command::WRITE_ZEROES, NO_HOLE | DURABLE),
    ] {
        served.disks.memory[0].0.lock().unwrap().fill(9);
        *served.disks.flushes.lock().unwrap() = 0;
        assert_eq!(client.asks(command, flags, 512, (EXPORT_BYTES - 1024) as u32, &[]), 0);
        let held = served.disks.memory[0].0.lock().unwrap();
        assert_eq!([held[511], held[512], held[held.len() - 513], held[held.len() - 512]], [9, 0, 0, 9]);
        assert_eq!(*served.disks.flushes.lock().unwrap() > 0, flags & DURABLE != 0);
    }
}

#[test]
fn a_flush_and_a_durable_write_reach_the_store_as_such() {
    let served = serve(None);
    let mut client = Client::of(served.server.addresses()[0], "data01", false);
    assert_eq!(client.asks(command::WRITE, 0, 0, 512, &[1; 512]), 0);
    assert_eq!(*served.disks.flushes.lock().unwrap(), 0);
    assert_eq!(client.asks(command::WRITE, DURABLE, 0, 512, &[1; 512]), 0);
    assert_eq!(client.asks(command::FLUSH, 0, 0, 0, &[]), 0);
    assert_eq!(*served.disks.flushes.lock().unwrap(), 2);
}

#[test]
fn requests_that_do_not_fit_are_refused_and_the_connection_goes_on() {
    let served = serve(None);
    let mut client = Client::of(served.server.addresses()[0], "data01", true);
    assert_eq!(client.reads(EXPORT_BYTES - 511, 512).0, INVALID);
    assert_eq!(client.reads(u64::MAX, 512).0, INVALID);
    assert_eq!(client.reads(0, u32::MAX).0, INVALID);
    assert_eq!(client.asks(command::WRITE, 0, EXPORT_BYTES, 512, &[1; 512]), NO_SPACE);
    assert_eq!(client.asks(command::WRITE_ZEROES, 0, 512, u32::MAX, &[]), NO_SPACE);
    assert_eq!(client.asks(command::TRIM, 0, 512, u32::MAX, &[]), INVALID);
    assert_eq!(client.asks(command::FLUSH, 0, 512, 0, &[]), INVALID);
    assert_eq!(client.asks(command::WRITE, WHOLE, 0, 512, &[1; 512]), INVALID);
    // Commands that are not offered: cache, block status, resize; and one that there is not.
    assert_eq!([5, 7, 8, 99].map(|command| client.asks(command, 0, 0, 512, &[])), [INVALID; 4]);
    assert_eq!(client.reads(0, 4096), (0, vec![0; 4096]));
}

#[test]
fn failures_of_the_store_are_told_as_the_protocol_knows_them() {
    for (number, told) in [(libc::EIO, 5), (libc::ENOSPC, NO_SPACE), (libc::ESHUTDOWN, 108), (libc::EILSEQ, 5)] {
        let served = serve(Some(number));
        for is_structured in [false, true] {
            let mut client = Client::of(served.server.addresses()[0], "log01", is_structured);
            assert_eq!(client.reads(0, 8192), (told, Vec::new()));
            assert_eq!(client.asks(command::WRITE, 0, 0, 512, &[1; 512]), told);
            assert_eq!(client.asks(command::TRIM, 0, 0, 512, &[]), told);
            assert_eq!(client.asks(command::FLUSH, 0, 0, 0, &[]), told);
        }
    }
}

#[test]
fn a_client_that_goes_has_all_its_replies_first() {
    let served = serve(None);
    let mut client = Client::of(served.server.addresses()[0], "data01", false);
    for _ in 0..100 {
        client.request(command::READ, 0, 0, 65_536, &[]);
    }
    client.request(command::DISCONNECT, 0, 0, 0, &[]);
    for _ in 0..100 {
        assert_eq!(client.reply(65_536), (0, vec![0; 65_536]));
    }
    assert!(client.is_ended());
    let mut other = Client::connect(served.server.addresses()[0]);
    other.send(&[0, 0, 0, 1]);
    other.option(2, &[]);
    assert_eq!(other.option_reply(), (1, Vec::new()));
    assert!(other.is_ended());
}

#[test]
fn a_volume_that_grows_takes_writes_at_once_and_tells_its_size_to_who_comes() {
    let served = serve(None);
    let address = served.server.addresses()[0];
    let mut client = Client::of(address, "data01", false);
    served.disks.memory[0].0.lock().unwrap().resize(2 * EXPORT_BYTES as usize, 0);
    served.server.grow(0, 2 * EXPORT_BYTES);
    assert_eq!(client.asks(command::WRITE, 0, EXPORT_BYTES, 512, &[3; 512]), 0);
    let mut old = Client::connect(address);
    old.send(&[0, 0, 0, 1]);
    old.option(1, b"data01");
    // Without the flag that leaves them out, zeroes follow size and flags.
    let told = old.take(134);
    assert_eq!(told[..8], (2 * EXPORT_BYTES).to_be_bytes());
    assert_eq!(old.reads(EXPORT_BYTES, 512), (0, vec![3; 512]));
}
