//! Rows of companies and their securities.

use assay_sql::RowSink;

use super::Row;
use crate::brokerage::{
    fees,
    ids::{company_address, company_id, news_id},
    market::{FIRST_DAY, FIRST_MARKET_DAY, HIGHEST_CENTS, LOWEST_CENTS, TRADING_US, at_us, date_of, price_cents},
    names::{exchange_id, industry_id, industry_of, write_company},
    tables::{COMPETITORS, INDUSTRIES, MARKET_DAYS, QUARTERS},
    words::write_name,
};

const FIRST_YEAR: i64 = 2000;
/// Days from 2000-01-01 to the first days of quarters.
const QUARTER_DAYS: [i32; 4] = [0, 91, 182, 274];

impl<S: RowSink> Row<'_, S> {
    pub(super) fn company(&mut self, company: u32) {
        self.begin();
        self.sink.int(company_id(company));
        self.words("ACTV");
        self.written(|_, out| write_company(company, out));
        self.words(&industry_id(industry_of(company)));
        let rating = self.random.between(0, 4) as usize;
        self.words(["AAA", "AA", "A", "BBB", "BB"][rating]);
        self.written(|random, out| {
            write_name(random, 2, out);
            out.push(b' ');
            write_name(random, 3, out);
        });
        self.sink.int(company_address(company));
        self.written(|random, out| random.text(100, 140, out));
        let opened = self.drawn(0, 60_000) as i32;
        self.sink.date(opened - 60_000);
        self.end();
    }

    /// Three others, in the same order always; its neighbours in its industry where there are as many.
    pub(super) fn competitors(&mut self, company: u32) {
        let companies = self.size.companies();
        let step = if companies > INDUSTRIES * (COMPETITORS + 1) { INDUSTRIES } else { 1 };
        for number in 1..=COMPETITORS {
            let other = (company + number * step) % companies;
            self.begin();
            self.sink.int(company_id(company));
            self.sink.int(company_id(other));
            self.words(&industry_id(industry_of(other)));
            self.end();
        }
    }

    pub(super) fn quarters(&mut self, company: u32) {
        for number in 0..QUARTERS {
            let (year, quarter) = (number / 4, number % 4);
            let revenue = self.drawn(1_000_000, 1_000_000_000) * 10;
            let earned = revenue * self.drawn(5, 30) / 100;
            let shares = self.drawn(1_000_000, 100_000_000);
            let diluted = shares * 11 / 10;
            let assets = self.drawn(10_000_000, 1_000_000_000) * 10;
            self.begin();
            self.sink.int(company_id(company));
            self.sink.int(FIRST_YEAR + i64::from(year));
            self.sink.int(i64::from(quarter) + 1);
            // 2000 and 2004 are leap years.
            let is_leap = year % 4 == 0;
            let begins = QUARTER_DAYS[quarter as usize] - i32::from(!is_leap && quarter > 0);
            self.sink.date(year as i32 * 365 + i32::from(year > 0) + begins);
            self.sink.decimal(revenue, 2);
            self.sink.decimal(earned, 2);
            self.sink.decimal(earned / shares, 2);
            self.sink.decimal(earned / diluted, 2);
            self.sink.decimal(earned * 100 / revenue, 2);
            self.sink.decimal(assets / 20, 2);
            self.sink.decimal(assets, 2);
            self.sink.decimal(assets / 3, 2);
            self.sink.int(shares);
            self.sink.int(diluted);
            self.end();
        }
    }

    /// The securities of a company.
    pub(super) fn issues(&self, company: u32) -> impl Iterator<Item = u32> + use<S> {
        let size = self.size;
        [company, company + size.companies()].into_iter().filter(move |security| *security < size.securities())
    }

    pub(super) fn securities(&mut self, company: u32) {
        for security in self.issues(company) {
            self.begin();
            self.symbol(security);
            self.words(if security < self.size.companies() { "COMMON" } else { "PREF_A" });
            self.words("ACTV");
            self.written(|_, out| write_company(company, out));
            self.words(&exchange_id(fees::exchange_of(security)));
            self.sink.int(company_id(company));
            let outstanding = self.drawn(1_000_000, 1_000_000_000);
            self.sink.int(outstanding);
            let listed = self.drawn(1, 30_000) as i32;
            self.sink.date(-listed - 1000);
            self.sink.date(-listed);
            self.money(100, 12_000);
            self.sink.decimal(HIGHEST_CENTS, 2);
            let day = self.drawn(1, 360) as i32;
            self.sink.date(FIRST_DAY - day);
            self.sink.decimal(LOWEST_CENTS, 2);
            let day = self.drawn(1, 360) as i32;
            self.sink.date(FIRST_DAY - day);
            self.money(0, 1000);
            self.money(0, 12_000);
            self.end();
        }
    }

    pub(super) fn last_trades(&mut self, company: u32) {
        let ended_us = i64::from(self.shape.days) * TRADING_US;
        for security in self.issues(company) {
            self.begin();
            self.symbol(security);
            self.sink.time(Some(at_us(ended_us - 1)));
            self.sink.decimal(price_cents(security, ended_us - 1), 2);
            self.sink.decimal(price_cents(security, ended_us - TRADING_US), 2);
            let volume = self.drawn(1, 100_000) * 100;
            self.sink.int(volume);
            self.end();
        }
    }

    pub(super) fn news(&mut self, company: u32) {
        for number in 0..2 {
            let bytes = self.shape.news_bytes;
            let ago = self.drawn(0, 100) as i32;
            self.begin();
            self.sink.int(news_id(company, number));
            self.written(|random, out| random.text(40, 80, out));
            self.written(|random, out| random.text(150, 250, out));
            self.written(|random, out| random.text(bytes, bytes, out));
            self.sink.time(Some(i64::from(FIRST_DAY - ago) * 86_400_000_000));
            self.name(3);
            self.name(4);
            self.end();
        }
    }

    pub(super) fn news_of(&mut self, company: u32) {
        for number in 0..2 {
            self.begin();
            self.sink.int(news_id(company, number));
            self.sink.int(company_id(company));
            self.end();
        }
    }

    pub(super) fn market_days(&mut self, company: u32) {
        for security in self.issues(company) {
            for day in 0..MARKET_DAYS {
                let close = self.drawn(LOWEST_CENTS as u32, HIGHEST_CENTS as u32);
                let (above, below) = (self.drawn(0, 100), self.drawn(0, 100));
                let volume = self.drawn(1000, 10_000) * 100;
                self.begin();
                self.sink.date(date_of(FIRST_MARKET_DAY, day.into()));
                self.symbol(security);
                self.sink.decimal(close, 2);
                self.sink.decimal(close + above, 2);
                self.sink.decimal(close - below, 2);
                self.sink.int(volume);
                self.end();
            }
        }
    }
}
