//! JSON in the one form that model files have: as Python's `json.dumps` writes it, with sorted
//! keys, without spaces, in ASCII, without NaN and infinity.

use crate::{broken, Result};

const DEEPEST: usize = 24;
const LONGEST_INTEGER: usize = 20;
/// Lists and objects, of which an empty one takes many times its two bytes.
const MOST_LISTS: usize = 1 << 20;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// The entry of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn integer(&self) -> Option<u64> {
        match self {
            Value::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    pub fn boolean(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// The value of a text; refuses all but the one form.
pub fn parse(text: &[u8]) -> Result<Value> {
    if text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > MOST_LISTS {
        return broken(format!("its header has more than {MOST_LISTS} lists and objects"));
    }
    let mut parser = Parser { text, at: 0 };
    match parser.value(DEEPEST) {
        Some(value) if parser.at == text.len() => Ok(value),
        _ => broken("its header is not JSON in canonical form, or nested too deeply"),
    }
}

/// A float as Python writes it.
pub fn float_text(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, size) = match exponent.strip_prefix('-') {
                Some(size) => ('-', size),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{size:0>2}")
        }
        None => text,
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn take(&mut self, expected: &[u8]) -> Option<()> {
        let fits = self.text[self.at..].starts_with(expected);
        self.at += if fits { expected.len() } else { 0 };
        fits.then_some(())
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next value, nested at most `levels` deep.
    fn value(&mut self, levels: usize) -> Option<Value> {
        match self.text.get(self.at)? {
            b'n' => self.take(b"null").map(|_| Value::Null),
            b't' => self.take(b"true").map(|_| Value::Bool(true)),
            b'f' => self.take(b"false").map(|_| Value::Bool(false)),
            b'"' => self.string().map(Value::Text),
            b'[' => self.inside(levels, b"[", b"]", Parser::value).map(Value::List),
            b'{' => {
                let entries = self.inside(levels, b"{", b"}", |parser, levels| {
                    let key = parser.string()?;
                    parser.take(b":")?;
                    Some((key, parser.value(levels)?))
                })?;
                let sorted = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
                sorted.then_some(Value::Object(entries))
            }
            _ => self.number(),
        }
    }

    fn inside<T>(
        &mut self,
        levels: usize,
        open: &[u8],
        close: &[u8],
        mut element: impl FnMut(&mut Self, usize) -> Option<T>,
    ) -> Option<Vec<T>> {
        let levels = levels.checked_sub(1)?;
        let mut elements = Vec::new();
        self.take(open)?;
        if self.take(close).is_some() {
            return Some(elements);
        }
        loop {
            elements.push(element(self, levels)?);
            if self.take(close).is_some() {
                return Some(elements);
            }
            self.take(b",")?;
        }
    }

    fn number(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'0'..=b'9');
        let text = std::str::from_utf8(&rest[..rest.iter().take_while(is_part).count()]).ok()?;
        self.at += text.len();
        if text.contains(['.', 'e']) {
            let value: f64 = text.parse().ok()?;
            return (value.is_finite() && float_text(value) == text).then_some(Value::Float(value));
        }
        let value: i128 = Some(text).filter(|text| text.len() <= LONGEST_INTEGER)?.parse().ok()?;
        (value.to_string() == text).then_some(Value::Integer(value))
    }

    fn string(&mut self) -> Option<String> {
        let mut text = String::new();
        self.take(b"\"")?;
        loop {
            match self.next()? {
                b'"' => return Some(text),
                b'\\' => text.push(self.escaped()?),
                byte @ b' '..=b'~' => text.push(char::from(byte)),
                _ => return None,
            }
        }
    }

    /// The character after a backslash: only those are escaped that must be.
    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            byte @ (b'"' | b'\\') => char::from(byte),
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'f' => '\u{c}',
            b'b' => '\u{8}',
            b'u' => {
                let first = self.unit()?;
                let mut units = vec![first];
                if (0xd800..0xdc00).contains(&first) {
                    self.take(b"\\u")?;
                    units.push(self.unit()?);
                }
                // Half of a pair is no text.
                let c = char::decode_utf16(units).next()?.ok()?;
                let short = matches!(c, ' '..='~' | '\n' | '\r' | '\t' | '\u{c}' | '\u{8}');
                return Some(c).filter(|_| !short);
            }
            _ => return None,
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        let lower = digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let text = std::str::from_utf8(digits).ok().filter(|_| lower)?;
        u16::from_str_radix(text, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_is_read() {
        let value = parse(br#"{"a":[1,-2,0.5,1e-07,1e+16,true,null],"b":"\u00e9\ud83d\ude00\n"}"#);
        let value = value.unwrap();
        let numbers: Vec<f64> =
            value.get("a").unwrap().list().unwrap()[..5].iter().filter_map(Value::number).collect();
        assert_eq!(numbers, [1.0, -2.0, 0.5, 1e-7, 1e16]);
        assert_eq!(value.get("b").unwrap().text(), Some("é😀\n"));
    }

    #[test]
    fn other_text_is_refused() {
        let deep = "[".repeat(25) + &"]".repeat(25);
        let texts = [
            "",
            " 1",
            "1 ",
            "[1, 2]",
            "[1,]",
            "{\"b\":1,\"a\":2}",
            "{\"a\":1,\"a\":1}",
            "01",
            "-0",
            "1.50",
            "1e5",
            "1e999",
            "NaN",
            "Infinity",
            "123456789012345678901",
            "\"é\"",
            "\"\\u00E9\"",
            "\"\\u0041\"",
            "\"\\ud800\"",
            "\"\\/\"",
            "\"a",
            "[",
            "tru",
            "+1",
            "-",
            &deep,
        ];
        for text in texts {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(("[".repeat(24) + &"]".repeat(24)).as_bytes()).is_ok());
    }

    #[test]
    fn no_more_lists_are_read_than_there_is_memory_for() {
        let lists = |count: usize| format!("[{}[]]", "[],".repeat(count - 2));
        assert!(parse(lists(MOST_LISTS).as_bytes()).is_ok());
        assert!(parse(lists(MOST_LISTS + 1).as_bytes()).is_err());
    }
}
