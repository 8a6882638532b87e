//! Blocks that the array copies by itself.

mod initiator;

use initiator::{Initiator, open, ten};

/// The disk's first name, as page 83h has it.
fn name_of(one: &mut Initiator) -> Vec<u8> {
    one.command(0xc0, &[0x12, 1, 0x83, 0, 255, 0], 255, &[]);
    let found = one.take().unwrap().data;
    found[4..8 + usize::from(found[7])].to_vec()
}

/// A list with one segment.
fn list(name: &[u8], from: u64, to: u64, blocks: u16) -> Vec<u8> {
    let mut list = vec![9, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0, 0xe4, 0, 0, 0];
    list.extend(name);
    list.resize(48, 0);
    list.extend([2, 0, 0, 24, 0, 0, 0, 0, 0, 0]);
    list.extend(blocks.to_be_bytes());
    list.extend(from.to_be_bytes());
    list.extend(to.to_be_bytes());
    list
}

fn copy(one: &mut Initiator, list: &[u8]) -> (u8, Vec<u8>) {
    let mut cdb = [0; 16];
    cdb[0] = 0x83;
    cdb[13] = list.len() as u8;
    one.command(0xa0, &cdb, list.len() as u32, list);
    let answer = one.take().unwrap();
    (answer.header[3], answer.data)
}

fn status(one: &mut Initiator, identifier: u8) -> Vec<u8> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[2], cdb[13]) = (0x84, identifier, 64);
    one.command(0xc0, &cdb, 64, &[]);
    one.take().unwrap().data
}

#[test]
fn blocks_are_copied_and_the_initiator_may_ask_how_many() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let half = memory.0.lock().unwrap().len() / 2;
    let content: Vec<u8> = (0..half).map(|at| (at / 512 % 251) as u8).collect();
    memory.0.lock().unwrap()[..half].copy_from_slice(&content);
    let name = name_of(&mut one);
    let blocks = (half / 512).min(5000) as u16;
    assert_eq!(copy(&mut one, &list(&name, 0, half as u64 / 512, blocks)).0, 0);
    let copied = usize::from(blocks) * 512;
    assert_eq!(memory.0.lock().unwrap()[half..half + copied], content[..copied]);
    let told = status(&mut one, 9);
    assert_eq!((told[4], &told[5..7], &told[8..12]), (1, &[0, 1][..], &(copied as u32).to_be_bytes()[..]));
    // One that was never asked for, and of another initiator.
    assert_eq!(status(&mut one, 8)[4] & 0xf, 5);
    let mut other = Initiator::named(server.addresses()[0], "other", 2);
    assert_eq!(other.names_itself(&[]).header[36], 0);
    assert_eq!(status(&mut other.awake(), 9)[4] & 0xf, 5);
}

#[test]
fn what_is_beyond_the_disk_or_of_another_name_is_not_copied() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let blocks = memory.0.lock().unwrap().len() as u64 / 512;
    memory.0.lock().unwrap()[..4096].fill(7);
    let name = name_of(&mut one);
    let mut wrong = name.clone();
    wrong[4] ^= 1;
    for list in [list(&name, 0, blocks - 7, 8), list(&name, u64::MAX, 0, 8), list(&wrong, 0, 100, 8)] {
        let (status, sense) = copy(&mut one, &list);
        assert_eq!((status, sense[4] & 0xf), (2, 0xa));
    }
    assert!(memory.0.lock().unwrap()[4096..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_reservation_of_another_initiator_keeps_copies_out() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut other = Initiator::named(server.addresses()[0], "other", 2);
    assert_eq!(other.names_itself(&[]).header[36], 0);
    let mut other = other.awake();
    memory.0.lock().unwrap()[..4096].fill(7);
    let name = name_of(&mut other);
    for (action, kind, at) in [(0, 0, 15), (1, 1, 7)] {
        let mut keys = [0; 24];
        keys[at] = 5;
        one.command(0xa0, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], 24, &keys);
        assert_eq!(one.take().unwrap().header[3], 0);
    }
    assert_eq!(copy(&mut other, &list(&name, 0, 8, 8)).0, 0x18);
    assert_eq!(copy(&mut one, &list(&name, 0, 8, 8)).0, 0);
    one.command(0xc0, &ten(0x28, 8, 8), 4096, &[]);
    assert_eq!(one.take().unwrap().data, [7; 4096]);
}
