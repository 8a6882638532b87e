//! Values of expressions: null, truth, whole numbers and doubles, and the texts that stand for them.

use std::fmt::Write;

/// Digits of a double in text, as C's `DBL_DIG` has them.
const DOUBLE_DIGITS: i32 = 15;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl Value {
    /// The type's name in messages.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Whether the value lets a branch be taken: numbers other than zero do.
    pub(crate) fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(truth) => truth,
            Self::Int(number) => number != 0,
            Self::Double(number) => number != 0.0,
        }
    }

    pub(crate) fn truth(self) -> Result<bool, String> {
        match self {
            Self::Bool(truth) => Ok(truth),
            other => Err(other.not_a("boolean")),
        }
    }

    pub(crate) fn int(self) -> Result<i64, String> {
        match self {
            Self::Int(number) => Ok(number),
            Self::Double(number) => {
                let rounded = number.round_ties_even();
                // Both ends are powers of two, which doubles hold exactly.
                let fits = (i64::MIN as f64..-(i64::MIN as f64)).contains(&rounded);
                if fits { Ok(rounded as i64) } else { Err(format!("double to int overflow for {rounded:.6}")) }
            }
            other => Err(other.not_a("int")),
        }
    }

    pub(crate) fn double(self) -> Result<f64, String> {
        match self {
            Self::Int(number) => Ok(number as f64),
            Self::Double(number) => Ok(number),
            other => Err(other.not_a("double")),
        }
    }

    fn not_a(self, wanted: &str) -> String {
        format!("cannot coerce {} to {wanted}", self.type_name())
    }

    /// The value of a variable's text.
    pub(crate) fn of_text(text: &[u8]) -> Result<Self, String> {
        let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
        let begins = |word: &str| word.len() >= text.len() && text.eq_ignore_ascii_case(&word.as_bytes()[..text.len()]);
        if text.is_empty() {
            return Err("an empty text is no value".into());
        }
        if is("null") {
            return Ok(Self::Null);
        }
        if begins("true") || begins("yes") || is("on") {
            return Ok(Self::Bool(true));
        }
        if begins("false") || begins("no") || is("off") || is("of") {
            return Ok(Self::Bool(false));
        }
        let plain = std::str::from_utf8(text).map_or("", str::trim_start);
        let digits = plain.strip_prefix(['+', '-']).unwrap_or(plain);
        if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            let number = plain.parse().map_err(|_| format!("value {plain:?} is out of range for type bigint"));
            return number.map(Self::Int);
        }
        match plain.parse::<f64>() {
            // What is too large for a double is no number; one that says so is.
            Ok(number) if number.is_finite() || !digits.starts_with(|first: char| first.is_ascii_digit()) => {
                Ok(Self::Double(number))
            }
            _ => Err(format!("malformed value {:?}", String::from_utf8_lossy(text))),
        }
    }

    /// Appends the value as statements get it.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Bool(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
            Self::Int(number) => assay_sql::write_int(number, out),
            Self::Double(number) => out.extend_from_slice(double_text(number).as_bytes()),
        }
    }

    /// The value as `debug()` shows it.
    pub(crate) fn shown(self) -> String {
        let mut text = Vec::new();
        self.write(&mut text);
        let text = String::from_utf8_lossy(&text);
        if self == Self::Null { "null".into() } else { format!("{} {text}", self.type_name()) }
    }
}

/// A double as C's `%.15g` writes it.
fn double_text(number: f64) -> String {
    if !number.is_finite() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" });
    }
    let places = (DOUBLE_DIGITS - 1) as usize;
    let scientific = format!("{number:.places$e}");
    let (digits, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let cut = |text: &str| -> String {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
    };
    if (-4..DOUBLE_DIGITS).contains(&exponent) {
        let places = (DOUBLE_DIGITS - 1 - exponent) as usize;
        return cut(&format!("{number:.places$}"));
    }
    let mut text = cut(digits);
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(text, "e{sign}{:02}", exponent.abs()).expect("writing to memory cannot fail");
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn doubles_are_written_with_fifteen_digits() {
        for (number, text) in [
            (-27.0, "-27"),
            (1024.0, "1024"),
            (-0.125, "-0.125"),
            (-0.000_32, "-0.00032"),
            (85_070_591_730_234_615_847_396_907_784_232_501_249.0, "8.50705917302346e+37"),
            (1e30, "1e+30"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (0.000_1, "0.0001"),
            (0.0, "0"),
            (9.999_999_999_999_999_5, "10"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn texts_of_variables_have_types() {
        for (text, value) in [
            ("null", Value::Null),
            ("t", Value::Bool(true)),
            ("YE", Value::Bool(true)),
            ("on", Value::Bool(true)),
            ("n", Value::Bool(false)),
            ("of", Value::Bool(false)),
            ("+3", Value::Int(3)),
            (" -17", Value::Int(-17)),
            ("-10.1", Value::Double(-10.1)),
            ("1e3", Value::Double(1000.0)),
        ] {
            assert_eq!(Value::of_text(text.as_bytes()), Ok(value), "{text}");
        }
        for text in ["", "bla", "trueXXX", "o", "1 2", "0x", "9223372036854775808", "1e999", "+"] {
            assert!(Value::of_text(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn doubles_round_to_the_nearest_even_number_or_are_refused() {
        assert_eq!([7.3, 0.5, 1.5, -2.5].map(|number| Value::Double(number).int().unwrap()), [7, 0, 2, -2]);
        for number in [1e32, f64::NAN, 9_223_372_036_854_775_808.0] {
            assert!(Value::Double(number).int().unwrap_err().starts_with("double to int overflow for "));
        }
        assert_eq!(Value::Double(-9_223_372_036_854_775_808.0).int(), Ok(i64::MIN));
    }

    proptest! {
        #[test]
        fn a_double_comes_back_to_fifteen_digits(number: f64) {
            let text = double_text(number);
            if number.is_finite() {
                let back: f64 = text.parse().unwrap();
                // The largest doubles are rounded beyond the last there is.
                prop_assert!(back.is_infinite() || (back - number).abs() <= number.abs() * 1e-14);
            }
        }

        #[test]
        fn no_text_makes_typing_panic(text in prop::collection::vec(any::<u8>(), 0..30)) {
            let _ = Value::of_text(&text);
        }
    }
}
