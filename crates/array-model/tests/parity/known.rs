//! Parity worked out by hand, and by the definitions alone, byte by byte.

use assay_array_model::{Code, RaidPolicy};
use proptest::prelude::*;

use crate::row::{Row, Shape};

/// Product in the field: the polynomials multiplied, then divided by x^8 + x^4 + x^3 + x^2 + 1.
fn product(a: u8, b: u8) -> u8 {
    let mut product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0_u16, |sum, bit| sum ^ u16::from(a) << bit);
    for bit in (8..16).rev() {
        if product >> bit & 1 == 1 {
            product ^= 0x11D << (bit - 8);
        }
    }
    product as u8
}

/// Row and diagonal parity of single bytes `data[column][row]`, every diagonal including the one not stored.
fn diagonals(prime: usize, data: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
    let mut rows = vec![0; prime - 1];
    for column in data {
        rows.iter_mut().zip(column).for_each(|(sum, byte)| *sum ^= byte);
    }
    let mut diagonals = vec![0; prime];
    for (column, bytes) in data.iter().enumerate().chain([(prime - 1, &rows)]) {
        bytes.iter().enumerate().for_each(|(row, byte)| diagonals[(row + column) % prime] ^= byte);
    }
    diagonals.pop();
    (rows, diagonals)
}

#[test]
fn q_of_three_bytes_by_hand() {
    // 2 x 02 = 04. 4 x 80: doubled once 100 = 1D (mod 11D), twice 3A. 01 + 04 + 3A = 3F.
    let code = Code::new(RaidPolicy::Raid6, 3, 1).unwrap();
    let (mut p, mut q) = ([0], [0]);
    code.encode(&[&[0x01], &[0x02], &[0x80]], &mut [&mut p, &mut q]).unwrap();
    assert_eq!((p, q), ([0x83], [0x3F]));
    // 80 becomes 00: 4 x 80 leaves Q.
    code.update(&mut [&mut p, &mut q], 2, 0, &[0x80], &[0x00]).unwrap();
    assert_eq!((p, q), ([0x03], [0x05]));
}

#[test]
fn diagonals_of_four_columns_by_hand() {
    // p = 5, four rows. Row parity: 11+21+41+81 = F0, 12+22+42+82 = F0, 14+24+44+84 = F0, 18+28+48+88 = F0.
    let data: [[u8; 4]; 4] =
        [[0x11, 0x12, 0x14, 0x18], [0x21, 0x22, 0x24, 0x28], [0x41, 0x42, 0x44, 0x48], [0x81, 0x82, 0x84, 0x88]];
    // Diagonal 0: (0,0) (3,2) (2,3) and row parity 1: 11+48+84+F0. Diagonal 3 has no row parity: (3,0) (2,1) (1,2) (0,3).
    let by_hand =
        [0x11 ^ 0x48 ^ 0x84 ^ 0xF0, 0x12 ^ 0x21 ^ 0x88 ^ 0xF0, 0x14 ^ 0x22 ^ 0x41 ^ 0xF0, 0x18 ^ 0x24 ^ 0x42 ^ 0x81];
    let code = Code::new(RaidPolicy::Dp, 4, 4).unwrap();
    let (mut row, mut diagonal) = ([0; 4], [0; 4]);
    code.encode(&data.each_ref().map(|column| &column[..]), &mut [&mut row, &mut diagonal]).unwrap();
    assert_eq!((row, diagonal), ([0xF0; 4], by_hand));
}

#[test]
fn one_write_changes_two_diagonals() {
    // p = 17, rows of 256 bytes. Row 3 of column 5 is on diagonal 8, its row parity on 3 - 1 = 2.
    let code = Code::new(RaidPolicy::Dp, 10, 4096).unwrap();
    assert_eq!(code.affected_parity(5, 3 * 256 + 10, 20), [778..798, 2 * 256 + 10..8 * 256 + 30]);
    // Row 11 of column 5 is on diagonal 16, which is not stored.
    assert_eq!(code.affected_parity(5, 11 * 256, 256)[1], 10 * 256..11 * 256);
    // Row 0 of row parity is on it as well.
    assert_eq!(code.affected_parity(5, 0, 256)[1], 5 * 256..6 * 256);
}

#[test]
fn diagonals_by_chunk_sizes_in_use() {
    for (columns, prime) in [(1, 5), (4, 5), (5, 17), (16, 17), (17, 257), (256, 257)] {
        let chosen = Code::new(RaidPolicy::Dp, columns, 65536).unwrap();
        assert_eq!(chosen, Code::diagonal(prime, columns, 65536).unwrap());
    }
}

proptest! {
    #[test]
    fn q_is_the_weighted_sum(columns in 1..=255_u32, bytes in 1..40_u64, seed in 0..1_u64 << 40) {
        let shape = Shape { policy: RaidPolicy::Raid6, prime: 0, columns, chunk_bytes: bytes };
        let row = Row::new(&shape, seed);
        let (mut p, mut q) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let mut weight = 1;
        for column in &row.data {
            for (byte, value) in column.iter().enumerate() {
                p[byte] ^= value;
                q[byte] ^= product(weight, *value);
            }
            weight = product(weight, 2);
        }
        prop_assert_eq!(&row.parity, &[p, q]);
    }

    #[test]
    fn diagonals_are_as_defined(
        (prime, columns) in prop::sample::select(vec![5_u32, 7, 17, 257]).prop_flat_map(|p| (Just(p), 1..p.min(40))),
        seed in 0..1_u64 << 40,
    ) {
        let shape = Shape { policy: RaidPolicy::Dp, prime, columns, chunk_bytes: u64::from(prime) - 1 };
        let row = Row::new(&shape, seed);
        let (rows, diagonals) = diagonals(prime as usize, &row.data);
        prop_assert_eq!(&row.parity, &[rows, diagonals]);
    }
}
