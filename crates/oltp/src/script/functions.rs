//! Functions of expressions, operators among them.

use super::{
    numbers::{GAUSSIAN_MIN, Stream, ZIPFIAN_RANGE, hash_fnv1a, hash_murmur2, permute},
    value::Value,
};

/// Most arguments of a function.
const ARGUMENTS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Is,
    Not,
    Abs,
    Least,
    Greatest,
    Debug,
    Pi,
    Sqrt,
    Ln,
    Exp,
    Int,
    Double,
    Power,
    Random,
    Gaussian,
    Exponential,
    Zipfian,
    /// Murmur2 (`true`) or FNV-1a.
    Hash(bool),
    Permute,
}

/// A function that scripts call by name, with the fewest and the most arguments.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    least: usize,
    most: usize,
}

const fn named(name: &'static str, function: Function, least: usize, most: usize) -> Named {
    Named { name, function, least, most }
}

pub(crate) const FUNCTIONS: [Named; 21] = [
    named("abs", Function::Abs, 1, 1),
    named("least", Function::Least, 1, ARGUMENTS_MAX),
    named("greatest", Function::Greatest, 1, ARGUMENTS_MAX),
    named("debug", Function::Debug, 1, 1),
    named("mod", Function::Modulo, 2, 2),
    named("pi", Function::Pi, 0, 0),
    named("sqrt", Function::Sqrt, 1, 1),
    named("ln", Function::Ln, 1, 1),
    named("exp", Function::Exp, 1, 1),
    named("int", Function::Int, 1, 1),
    named("double", Function::Double, 1, 1),
    named("pow", Function::Power, 2, 2),
    named("power", Function::Power, 2, 2),
    named("random", Function::Random, 2, 2),
    named("random_gaussian", Function::Gaussian, 3, 3),
    named("random_exponential", Function::Exponential, 3, 3),
    named("random_zipfian", Function::Zipfian, 3, 3),
    named("hash", Function::Hash(true), 2, 2),
    named("hash_murmur2", Function::Hash(true), 2, 2),
    named("hash_fnv1a", Function::Hash(false), 2, 2),
    named("permute", Function::Permute, 3, 3),
];

/// A function by its name, in any case.
pub(crate) fn function_named(name: &str) -> Option<&'static Named> {
    FUNCTIONS.iter().find(|known| known.name.eq_ignore_ascii_case(name))
}

impl Named {
    /// Whether the last argument is the seed that all users share, unless it is given.
    pub(crate) fn is_seeded(&self) -> bool {
        matches!(self.function, Function::Hash(_) | Function::Permute)
    }

    /// Refuses a number of arguments.
    pub(crate) fn check(&self, count: usize) -> Result<(), String> {
        if count < self.least && self.most == ARGUMENTS_MAX {
            return Err(format!("at least one argument expected ({})", self.name));
        }
        if count > self.most && self.most == ARGUMENTS_MAX {
            return Err(format!("too many function arguments, maximum is {ARGUMENTS_MAX} ({})", self.name));
        }
        if (self.least..=self.most).contains(&count) {
            return Ok(());
        }
        Err(format!("unexpected number of arguments ({})", self.name))
    }
}

/// The value of a function of these arguments, which are as many as it takes.
pub(crate) fn apply(function: Function, arguments: &[Value], stream: &mut Stream) -> Result<Value, String> {
    if arguments.contains(&Value::Null) && !matches!(function, Function::Is | Function::Debug) {
        return Ok(Value::Null);
    }
    let first = || arguments[0];
    match function {
        Function::Add | Function::Subtract | Function::Multiply | Function::Divide | Function::Modulo => {
            arithmetic(function, arguments[0], arguments[1])
        }
        Function::Equal | Function::NotEqual | Function::Less | Function::LessOrEqual => {
            compared(function, arguments[0], arguments[1]).map(Value::Bool)
        }
        Function::BitAnd | Function::BitOr | Function::BitXor | Function::ShiftLeft | Function::ShiftRight => {
            let (left, right) = (arguments[0].int()?, arguments[1].int()?);
            Ok(Value::Int(bits(function, left, right)))
        }
        Function::Is => Ok(Value::Bool(arguments[0] == arguments[1])),
        Function::Not => Ok(Value::Bool(!first().truth()?)),
        Function::Abs => match first() {
            Value::Int(number) => number.checked_abs().map(Value::Int).ok_or_else(|| out_of_range("abs")),
            other => Ok(Value::Double(other.double()?.abs())),
        },
        Function::Least | Function::Greatest => extreme(function == Function::Least, arguments),
        Function::Debug => Ok(first()),
        Function::Pi => Ok(Value::Double(std::f64::consts::PI)),
        Function::Sqrt => Ok(Value::Double(first().double()?.sqrt())),
        Function::Ln => Ok(Value::Double(first().double()?.ln())),
        Function::Exp => Ok(Value::Double(first().double()?.exp())),
        Function::Double => Ok(Value::Double(first().double()?)),
        Function::Int => Ok(Value::Int(first().int()?)),
        Function::Power => Ok(Value::Double(first().double()?.powf(arguments[1].double()?))),
        Function::Random | Function::Gaussian | Function::Exponential | Function::Zipfian => {
            drawn(function, arguments, stream).map(Value::Int)
        }
        Function::Hash(is_murmur) => {
            let (value, seed) = (arguments[0].int()?, arguments[1].int()?);
            Ok(Value::Int(if is_murmur { hash_murmur2(value, seed) } else { hash_fnv1a(value, seed) }))
        }
        Function::Permute => {
            let (value, size, seed) = (arguments[0].int()?, arguments[1].int()?, arguments[2].int()?);
            if size <= 0 {
                return Err("permute size parameter must be greater than zero".into());
            }
            Ok(Value::Int(permute(value, size, seed)))
        }
    }
}

fn out_of_range(operation: &str) -> String {
    format!("bigint {operation} out of range")
}

/// Doubles if one side is a double; a remainder is one of whole numbers.
fn arithmetic(function: Function, left: Value, right: Value) -> Result<Value, String> {
    let is_double = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if is_double && function != Function::Modulo {
        let (left, right) = (left.double()?, right.double()?);
        return Ok(Value::Double(match function {
            Function::Add => left + right,
            Function::Subtract => left - right,
            Function::Multiply => left * right,
            _ => left / right,
        }));
    }
    let (left, right) = (left.int()?, right.int()?);
    if right == 0 && matches!(function, Function::Divide | Function::Modulo) {
        return Err("division by zero".into());
    }
    let (result, operation) = match function {
        Function::Add => (left.checked_add(right), "add"),
        Function::Subtract => (left.checked_sub(right), "sub"),
        Function::Multiply => (left.checked_mul(right), "mul"),
        Function::Divide => (left.checked_div(right), "div"),
        _ => (Some(left.wrapping_rem(right)), "mod"),
    };
    result.map(Value::Int).ok_or_else(|| out_of_range(operation))
}

fn compared(function: Function, left: Value, right: Value) -> Result<bool, String> {
    let is_double = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if is_double {
        let (left, right) = (left.double()?, right.double()?);
        return Ok(match function {
            Function::Equal => left == right,
            Function::NotEqual => left != right,
            Function::Less => left < right,
            _ => left <= right,
        });
    }
    let (left, right) = (left.int()?, right.int()?);
    Ok(match function {
        Function::Equal => left == right,
        Function::NotEqual => left != right,
        Function::Less => left < right,
        _ => left <= right,
    })
}

/// Shifts by more than a number's bits go round, as the processor's do.
fn bits(function: Function, left: i64, right: i64) -> i64 {
    match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        Function::ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }
}

fn extreme(is_least: bool, arguments: &[Value]) -> Result<Value, String> {
    if arguments.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut found = arguments[0].double()?;
        for value in &arguments[1..] {
            let value = value.double()?;
            found = if is_least { found.min(value) } else { found.max(value) };
        }
        return Ok(Value::Double(found));
    }
    let mut found = arguments[0].int()?;
    for value in &arguments[1..] {
        let value = value.int()?;
        found = if is_least { found.min(value) } else { found.max(value) };
    }
    Ok(Value::Int(found))
}

fn drawn(function: Function, arguments: &[Value], stream: &mut Stream) -> Result<i64, String> {
    let (low, high) = (arguments[0].int()?, arguments[1].int()?);
    if low > high {
        return Err("empty range given to random".into());
    }
    if high.checked_sub(low).and_then(|width| width.checked_add(1)).is_none() {
        return Err("random range is too large".into());
    }
    if function == Function::Random {
        return Ok(stream.uniform(low, high));
    }
    let parameter = arguments[2].double()?;
    match function {
        Function::Gaussian if parameter >= GAUSSIAN_MIN => Ok(stream.gaussian(low, high, parameter)),
        Function::Gaussian => {
            Err(format!("gaussian parameter must be at least {GAUSSIAN_MIN:.6} (not {parameter:.6})"))
        }
        Function::Zipfian if ZIPFIAN_RANGE.contains(&parameter) => Ok(stream.zipfian(low, high, parameter)),
        Function::Zipfian => {
            let (least, most) = (ZIPFIAN_RANGE.start(), ZIPFIAN_RANGE.end());
            Err(format!("zipfian parameter must be in range [{least:.3}, {most:.0}] (not {parameter:.6})"))
        }
        _ if parameter > 0.0 => Ok(stream.exponential(low, high, parameter)),
        _ => Err(format!("exponential parameter must be greater than zero (not {parameter:.6})")),
    }
}
