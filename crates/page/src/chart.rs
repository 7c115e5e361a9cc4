//! Charts, drawn by plotters as SVG whose text stays text.
//!
//! A colour of a series stands in the drawing as a number that the style sheet maps to one that suits paper or a dark
//! screen, and to a dash; a letter or a name stands beside it, so that nothing hangs on the colour.

use crate::axis::Axis;
use crate::table::trusted;
use maud::Markup;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write as _;

/// Width of a drawing. It is shown a little larger on a desk and smaller on a telephone, and can be read on both.
const WIDTH: u32 = 480;
/// Size of text, in the drawing's units; plotters takes it 1.24 times as large.
const TEXT: f64 = 13.5 * 1.24;

/// Axes and their text, lines of the grid, and what is not a series.
const INK: RGBColor = RGBColor(0x1A, 0x1A, 0x1A);
const GRID: RGBColor = RGBColor(0xD8, 0xD8, 0xD8);

/// Series, in turn. `style.css` knows these numbers: each has a dash and a colour for dark screens there.
const SERIES: [RGBColor; 8] = [
    RGBColor(0x0B, 0x61, 0xA4),
    RGBColor(0xB8, 0x48, 0x00),
    RGBColor(0x00, 0x75, 0x56),
    RGBColor(0x8A, 0x3F, 0xA0),
    RGBColor(0x7A, 0x52, 0x00),
    RGBColor(0xB3, 0x19, 0x5E),
    RGBColor(0x00, 0x6D, 0x77),
    RGBColor(0x55, 0x55, 0x55),
];

/// A chart before it is drawn. Points are values; the axes say where they lie.
pub(crate) struct Chart {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Height of the part between the axes.
    pub(crate) height: u32,
    pub(crate) marks: Vec<Mark>,
}

/// A point of a chart.
pub(crate) type At = (f64, f64);

/// Something drawn.
pub(crate) enum Mark {
    /// A series' line through its points.
    Line(usize, Vec<At>),
    /// A filled circle.
    Dot(usize, At),
    /// An open square.
    Square(usize, At),
    /// A line of interval between two points.
    Span(usize, At, At),
    /// A bar between two corners.
    Bar(usize, At, At),
    /// A line of reference, dashed.
    Guide(At, At),
    /// A short upright stroke that marks an instant, so many units high at the foot of the chart.
    Instant(usize, f64, u32),
    /// Text to the right of a point.
    Text(usize, At, String),
}

type Area<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// An axis as plotters takes it: marked at our ticks and nowhere else.
struct Scale {
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl From<&Axis> for Scale {
    fn from(axis: &Axis) -> Scale {
        Scale { from: axis.from, to: axis.to, ticks: axis.ticks.iter().map(|(at, _)| *at).collect() }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        low + ((value - self.from) / (self.to - self.from) * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.from..self.to
    }
}

impl Chart {
    /// A chart with a row each, names to the left.
    pub(crate) fn of_rows(x: Axis, names: &[String]) -> Chart {
        Chart { x, y: Axis::categories(names), height: 30 + 26 * names.len() as u32, marks: Vec::new() }
    }

    /// The drawing, named by the element `caption`.
    pub(crate) fn svg(&self, caption: &str) -> Markup {
        let mut text = String::new();
        let size = (WIDTH, self.height + 46);
        self.draw(SVGBackend::with_string(&mut text, size).into_drawing_area()).expect("a string takes every drawing");
        trusted(tidied(&text, size, caption))
    }

    fn draw(
        &self,
        root: DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let mut chart = ChartBuilder::on(&root)
            .margin_top(if self.y.title.is_empty() { 4 } else { 22 })
            .margin_right(16)
            .x_label_area_size(42)
            .y_label_area_size(self.y.label_room())
            .build_cartesian_2d(Scale::from(&self.x), Scale::from(&self.y))
            .map_err(|error| error.to_string())?;
        let font = ("sans-serif", TEXT).into_font().color(&INK);
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style(font.clone())
            .axis_desc_style(font.clone())
            .x_label_formatter(&|at| self.x.label(*at))
            .y_label_formatter(&|at| self.y.label(*at))
            .x_desc(self.x.title.clone())
            .draw()
            .map_err(|error| error.to_string())?;
        // An upright title costs width that a telephone does not have: it stands above the axis.
        root.draw(&Text::new(self.y.title.clone(), (4, 2), font)).map_err(|error| error.to_string())?;
        for mark in &self.marks {
            self.mark(&mut chart, mark).map_err(|error| error.to_string())?;
        }
        root.present().map_err(|error| error.to_string())?;
        Ok(())
    }

    fn mark(&self, chart: &mut Area<'_, '_>, mark: &Mark) -> Result<(), Box<dyn std::error::Error>> {
        let at = |(x, y): At| (self.x.at(x), self.y.at(y));
        let area = chart.plotting_area();
        let pixel = |point: At| area.map_coordinate(&at(point));
        let root = area.strip_coord_spec();
        let origin = area.get_base_pixel();
        let local = |point: At| {
            let (x, y) = pixel(point);
            (x - origin.0, y - origin.1)
        };
        match mark {
            Mark::Line(series, points) => {
                let points: Vec<(i32, i32)> = points.iter().map(|point| local(*point)).collect();
                root.draw(&PathElement::new(points, colour(*series).stroke_width(2)))?;
            }
            Mark::Dot(series, point) => root.draw(&Circle::new(local(*point), 4, colour(*series).filled()))?,
            Mark::Square(series, point) => {
                let (x, y) = local(*point);
                root.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], colour(*series)))?;
            }
            Mark::Span(series, from, to) => {
                root.draw(&PathElement::new([local(*from), local(*to)], colour(*series).stroke_width(3)))?;
            }
            Mark::Bar(series, from, to) => {
                root.draw(&Rectangle::new([local(*from), local(*to)], colour(*series).filled()))?;
            }
            Mark::Guide(from, to) => {
                let ends: Vec<(i32, i32)> = vec![local(*from), local(*to)];
                root.draw(&PathElement::new(ends, INK.stroke_width(1)))?;
            }
            Mark::Instant(series, x, high) => {
                let (x, foot) = local((*x, f64::MIN));
                root.draw(&PathElement::new([(x, foot), (x, foot - *high as i32)], colour(*series).stroke_width(1)))?;
            }
            Mark::Text(series, point, text) => {
                let (x, y) = local(*point);
                let style = ("sans-serif", TEXT).into_font().color(&colour(*series));
                let style = style.pos(Pos::new(HPos::Left, VPos::Center));
                root.draw(&Text::new(text.clone(), (x + 6, y), style))?;
            }
        }
        Ok(())
    }
}

fn colour(series: usize) -> RGBColor {
    SERIES[series % SERIES.len()]
}

/// The drawing with a name for screen readers and a size that follows the page, without what every element repeats.
fn tidied(svg: &str, (width, height): (u32, u32), caption: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let mut text = format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{caption}\">");
    for line in body.lines() {
        // A quote inside a text is `&quot;`, so these only ever match attributes.
        let line = line.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "");
        let _ = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let names = ["A packed".to_owned(), "B <b>\"x\" opacity=\"1\"</b>".to_owned()];
        let mut chart = Chart::of_rows(Axis::logarithmic("times as long", [1.0, 5.0]), &names);
        chart.marks.push(Mark::Guide((1.0, f64::MIN), (1.0, f64::MAX)));
        chart.marks.push(Mark::Dot(0, (5.0, 0.0)));
        chart.marks.push(Mark::Span(1, (4.0, -1.0), (5.0, -1.0)));
        chart
    }

    #[test]
    fn a_chart_is_text_and_shapes_with_a_name() {
        let svg = chart().svg("caption-1").into_string();
        assert!(svg.starts_with("<svg viewBox=\"0 0 480 "), "{svg}");
        assert!(svg.contains("aria-labelledby=\"caption-1\"") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("A packed") && svg.contains("times as long"), "{svg}");
        assert!(svg.contains("B &lt;b&gt;&quot;x&quot; opacity=&quot;1&quot;&lt;/b&gt;"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_larger_value_lies_farther_right_and_the_first_row_on_top() {
        let svg = chart().svg("c").into_string();
        let attribute = |element: &str, name: &str| -> f64 {
            let from = svg.find(&format!("<{element} ")).unwrap();
            let rest = &svg[from..];
            let value = rest.split_once(&format!(" {name}=\"")).unwrap().1;
            value.split_once('"').unwrap().0.parse().unwrap()
        };
        assert!(attribute("circle", "cx") > 350.0, "{svg}");
        assert!(attribute("circle", "cy") < 40.0, "{svg}");
    }

    #[test]
    fn the_style_sheet_knows_every_colour_that_is_drawn() {
        let sheet = include_str!("style.css");
        for RGBColor(r, g, b) in SERIES.into_iter().chain([INK, GRID]) {
            assert!(sheet.contains(&format!("=\"#{r:02X}{g:02X}{b:02X}\"]")), "#{r:02X}{g:02X}{b:02X}");
        }
    }
}
