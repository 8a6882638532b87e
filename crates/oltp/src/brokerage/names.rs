//! Keys and names of things as texts, which tables and transactions share.

use super::{
    ids::Size,
    tables::INDUSTRIES,
    words::{write_name, write_numbered},
};
use crate::random::Random;

const NAMES: u64 = 301;

pub(crate) fn sector_id(sector: u32) -> String {
    format!("S{}", (b'A' + sector as u8) as char)
}

pub(crate) fn write_sector_name(sector: u32, out: &mut Vec<u8>) {
    write_numbered(sector + 7000, out);
}

pub(crate) fn industry_id(industry: u32) -> String {
    let letter = |number: u32| (b'A' + number as u8) as char;
    format!("{}{}", letter(industry / 26), letter(industry % 26))
}

pub(crate) fn industry_of(company: u32) -> u32 {
    company % INDUSTRIES
}

pub(crate) fn exchange_id(exchange: u32) -> String {
    format!("EX{}", (b'A' + exchange as u8) as char)
}

pub(crate) fn zip_code(number: u32) -> String {
    format!("{:05}", 1001 + number * 6)
}

pub(crate) fn write_company(company: u32, out: &mut Vec<u8>) {
    write_numbered(company % 110_592, out);
    out.extend_from_slice(format!(" {} Company", company + 1).as_bytes());
}

pub(crate) fn broker_name(broker: u32) -> String {
    let mut name = Vec::new();
    write_numbered(broker % 110_592, &mut name);
    format!("{} B. {}", String::from_utf8_lossy(&name), broker + 1)
}

/// The number by which an office of taxes knows a customer.
pub(crate) fn tax_number(customer: u32) -> String {
    format!("{:03}AS{:05}TX", customer / 100_000, customer % 100_000)
}

/// Whom permission `number` of a customer's accounts is for: the customer, then others.
pub(crate) fn delegate_of(size: Size, customer: u32, number: u32) -> u32 {
    (customer + number * 37) % size.customers
}

/// Last and first name of a customer.
pub(crate) fn names_of(seed: u64, customer: u32) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random::of(seed, NAMES, customer.into());
    let (mut last, mut first) = (Vec::new(), Vec::new());
    let syllables = random.between(2, 4);
    write_name(&mut random, syllables, &mut last);
    write_name(&mut random, 2, &mut first);
    (last, first)
}
