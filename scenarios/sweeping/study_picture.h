// The pictures of a study ("pictures", scenarios/sweeping/study.h) as SVG: panels side by side,
// drawn like the figures that a paper has. Ours is filled, what is published is a diamond above the
// same place on the axis; whatever is drawn says its numbers when it is pointed at.
#pragma once

#include <optional>
#include <string>

#include "scenarios/sweeping/study.h"
#include "scenarios/sweeping/sweep.h"

namespace rehearse {

// What a panel draws for a point: the metric, or in a panel of ratios the ratio to the point that
// it is relative to, and 1 for that point itself. Nothing if the point failed or was left out.
std::optional<double> DrawnValue(const Study& study, const Sweep& sweep, const StudyPanel& panel,
                                 size_t point);
// ... and what is published of it.
std::optional<double> DrawnFigure(const Study& study, const StudyPanel& panel, size_t point);

// Of a study that has pictures.
std::string StudySvg(const Study& study, const Sweep& sweep);

}  // namespace rehearse
