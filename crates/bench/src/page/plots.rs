//! Drawings, as SVG.

use crate::report::Report;
use anyhow::anyhow;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (820, 460);
const FONT: &str = "sans-serif";
/// Distinct also for those who do not see red and green apart.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(140, 140, 140),
    RGBColor(240, 228, 66),
];
/// Segments of a bar thinner than this are drawn together.
const THIN_CYCLES: f64 = 1.0;

/// One line.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines over one axis.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    /// A logarithmic axis.
    pub(super) log_x: bool,
    /// A logarithmic axis.
    pub(super) log_y: bool,
    pub(super) series: Vec<Series>,
}

impl Chart {
    /// Draws it; nothing, where there are no points.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn draw(&self, path: &Path) -> anyhow::Result<()> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let ends = |pick: fn(&(f64, f64)) -> f64| {
            let values = points().map(pick);
            values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)))
        };
        let ((x0, x1), (y0, y1)) = (ends(|point| point.0), ends(|point| point.1));
        if x0 >= x1 {
            return Ok(());
        }
        let (y_log, y_linear) = (y0.max(1e-3) / 1.5..y1 * 8.0, 0.0..y1 * 1.3);
        match (self.log_x, self.log_y) {
            (true, true) => self.plot(path, (x0..x1).log_scale(), y_log.log_scale()),
            (true, false) => self.plot(path, (x0..x1).log_scale(), y_linear),
            (false, true) => self.plot(path, x0..x1, y_log.log_scale()),
            (false, false) => self.plot(path, x0..x1, y_linear),
        }
        .map_err(|error| anyhow!("{} cannot be drawn: {error}", path.display()))
    }

    fn plot<X, Y>(&self, path: &Path, x: X, y: Y) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut builder = ChartBuilder::on(&area);
        builder.caption(self.title, (FONT, 20)).margin(14).x_label_area_size(44).y_label_area_size(64);
        let mut chart = builder.build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .draw()?;
        for (series, colour) in self.series.iter().zip(COLOURS) {
            let line = LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)).point_size(4);
            chart
                .draw_series(line)?
                .label(series.name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 14))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// 600000 as 600k.
fn short(value: f64) -> String {
    let rounded = |value: f64| match value.fract().abs() < 1e-9 {
        true => format!("{value:.0}"),
        false => format!("{value:.1}"),
    };
    match value {
        value if value >= 1e6 => format!("{}M", rounded(value / 1e6)),
        value if value >= 1e4 => format!("{}k", rounded(value / 1e3)),
        value => rounded(value),
    }
}

/// One part of a bar, in cycles per packet.
pub(super) type Segment = (String, f64);

/// The bare loop's cycles: the packets and ports, and the memory of sessions and flows.
pub(super) fn bare_segments(report: &Report) -> Vec<Segment> {
    let Some(spread) = report.spread else { return vec![] };
    let (floor, bare) = (spread.floor.median, spread.bare.median);
    vec![
        ("floor: port and packets".to_owned(), floor),
        ("session and flow lines".to_owned(), (bare - floor).max(0.0)),
    ]
}

/// The product's: each node's share of an average packet, and what lies between nodes and ports.
pub(super) fn product_segments(report: &Report) -> Vec<Segment> {
    let Some(spread) = report.spread else { return vec![] };
    let packets = report.nodes.iter().map(|node| node.packets).max().unwrap_or(1).max(1) as f64;
    let share = |node: &crate::report::Node| node.cycles_per_packet * node.packets as f64 / packets;
    let (thick, thin): (Vec<_>, Vec<_>) = report.nodes.iter().partition(|node| share(node) >= THIN_CYCLES);
    let nodes: f64 = report.nodes.iter().map(share).sum();
    let mut segments = vec![("port and worker".to_owned(), (spread.product.median - nodes).max(0.0))];
    segments.extend(thick.into_iter().map(|node| (node.name.clone(), share(node))));
    if !thin.is_empty() {
        segments.push(("other nodes".to_owned(), thin.into_iter().map(share).sum()));
    }
    segments
}

/// Two stacked bars.
///
/// # Errors
/// The file cannot be written.
pub(super) fn bars(path: &Path, report: &Report) -> anyhow::Result<()> {
    let bars = [("bare loop", bare_segments(report)), ("product", product_segments(report))];
    draw_bars(path, &bars).map_err(|error| anyhow!("{} cannot be drawn: {error}", path.display()))
}

fn draw_bars(path: &Path, bars: &[(&str, Vec<Segment>)]) -> Result<(), Box<dyn std::error::Error>> {
    let height = |segments: &[Segment]| -> f64 { segments.iter().map(|(_, cycles)| cycles).sum() };
    let most = bars.iter().map(|(_, segments)| height(segments)).fold(1.0, f64::max);
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&area);
    builder.caption("Cycles per packet, by node", (FONT, 20)).margin(14).y_label_area_size(64);
    let mut chart = builder.build_cartesian_2d(0.0..2.0, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(TRANSPARENT)
        .y_desc("cycles per packet")
        .draw()?;
    for (at, (name, segments)) in bars.iter().enumerate() {
        let left = at as f64 + 0.08;
        let mut base = 0.0;
        for (segment, (label, cycles)) in segments.iter().enumerate() {
            // A colour comes again with every eighth segment, paler.
            let pale = 1.0 - 0.5 * (segment / COLOURS.len()) as f64;
            let colour = COLOURS[segment % COLOURS.len()].mix(pale);
            let bar = [(left, base), (left + 0.3, base + cycles)];
            chart.draw_series([Rectangle::new(bar, colour.filled())])?;
            let middle = (left + 0.32, base + cycles / 2.0);
            if *cycles > most * 0.02 {
                chart.draw_series([Text::new(format!("{label}: {cycles:.0}"), middle, (FONT, 13))])?;
            }
            base += cycles;
        }
        let top = (left, base + most * 0.035);
        chart.draw_series([Text::new(format!("{name}: {base:.0}"), top, (FONT, 15))])?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [(1.0, "1"), (0.25, "0.2"), (600_000.0, "600k"), (1_500_000.0, "1.5M")] {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn a_chart_is_an_svg_with_its_words() {
        let path = tempfile::tempdir().unwrap().keep().join("chart.svg");
        let series = vec![Series { name: "product", points: vec![(1_000.0, 5.0), (10_000.0, 4.0)] }];
        let chart =
            Chart { title: "over sessions", x: "sessions", y: "Mpps", log_x: true, log_y: false, series };
        chart.draw(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<svg") && text.contains("over sessions") && text.contains("product"));
    }
}
