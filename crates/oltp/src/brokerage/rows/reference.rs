//! Rows that are there once: kinds, rates, places.

use assay_sql::RowSink;

use super::Row;
use crate::brokerage::{
    fees,
    ids::exchange_address,
    kinds::TradeType as Kind,
    names::{exchange_id, industry_id, sector_id, write_sector_name, zip_code},
    tables::{SECTORS, ZIP_CODES},
    words::{write_name, write_numbered},
};

const STATUSES: [(&str, &str); 5] =
    [("CMPT", "Completed"), ("ACTV", "Active"), ("SBMT", "Submitted"), ("PNDG", "Pending"), ("CNCL", "Canceled")];

impl<S: RowSink> Row<'_, S> {
    pub(super) fn status(&mut self, key: u32) {
        let (id, name) = STATUSES[key as usize];
        self.begin();
        self.words(id);
        self.words(name);
        self.end();
    }

    pub(super) fn trade_type(&mut self, key: u32) {
        let kind = Kind::ALL[key as usize];
        self.begin();
        self.words(kind.id());
        self.words(kind.title());
        self.sink.int(kind.sells().into());
        self.sink.int(kind.is_market().into());
        self.end();
    }

    pub(super) fn sector(&mut self, key: u32) {
        self.begin();
        self.words(&sector_id(key));
        self.written(|_, out| write_sector_name(key, out));
        self.end();
    }

    pub(super) fn industry(&mut self, key: u32) {
        self.begin();
        self.words(&industry_id(key));
        self.written(|_, out| write_numbered(key + 9000, out));
        self.words(&sector_id(key % SECTORS));
        self.end();
    }

    pub(super) fn exchange(&mut self, key: u32) {
        let listed = (0..self.size.securities()).filter(|security| fees::exchange_of(*security) == key).count();
        self.begin();
        self.words(&exchange_id(key));
        self.written(|_, out| write_numbered(key + 11_000, out));
        self.sink.int(listed as i64);
        self.sink.int(900);
        self.sink.int(1700);
        self.written(|random, out| random.text(40, 80, out));
        self.sink.int(exchange_address(key));
        self.end();
    }

    pub(super) fn charge(&mut self, key: u32) {
        let (kind, tier) = (Kind::ALL[key as usize / 3], key as u8 % 3 + 1);
        self.begin();
        self.words(kind.id());
        self.sink.int(tier.into());
        self.sink.decimal(fees::charge_cents(kind, tier), 2);
        self.end();
    }

    pub(super) fn commission_rate(&mut self, key: u32) {
        let (tier, kind) = (key as u8 / 80 + 1, Kind::ALL[key as usize / 16 % 5]);
        let (exchange, step) = (key / 4 % 4, key as usize % 4);
        let from = fees::QUANTITIES_FROM[step];
        let to = fees::QUANTITIES_FROM.get(step + 1).map_or(fees::QUANTITY_MAX, |next| next - 1);
        self.begin();
        self.sink.int(tier.into());
        self.words(kind.id());
        self.words(&exchange_id(exchange));
        self.sink.int(from);
        self.sink.int(to);
        self.sink.decimal(fees::commission_rate(tier, kind, exchange, from), 2);
        self.end();
    }

    pub(super) fn tax_rate(&mut self, key: u32) {
        self.begin();
        self.written(|_, out| fees::write_tax_id(key, out));
        self.written(|_, out| write_numbered(key + 13_000, out));
        self.sink.decimal(fees::tax_rate(key), 5);
        self.end();
    }

    pub(super) fn zip_code(&mut self, key: u32) {
        self.begin();
        self.words(&zip_code(key));
        self.written(|_, out| write_numbered(key + 20_000, out));
        self.written(|_, out| write_numbered(key % 62 + 17_000, out));
        self.end();
    }

    pub(super) fn address(&mut self, id: i64) {
        self.begin();
        self.sink.int(id);
        self.written(|random, out| {
            out.extend_from_slice(format!("{} ", random.between(1, 999)).as_bytes());
            write_name(random, 3, out);
            out.extend_from_slice(b" Street");
        });
        self.written(|random, out| {
            out.extend_from_slice(format!("Floor {}", random.between(1, 30)).as_bytes());
        });
        let zip = self.random.between(0, ZIP_CODES - 1);
        self.words(&zip_code(zip));
        self.words(if zip.is_multiple_of(5) { "Canada" } else { "USA" });
        self.end();
    }
}
