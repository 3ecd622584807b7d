// The tables of a study (scenarios/sweeping/study.h says what they mean).
#pragma once

#include "sim/base/json_shape.h"

namespace rehearse {

// A study with "groups", or one with the keys of its only group beside the others.
inline constexpr const char* kWithGroups = "where there are \"groups\"";
inline constexpr const char* kWithout = "where there are no \"groups\"";

const ObjectShape& StudyShape();
const ObjectShape& MetricShape();
const ObjectShape& ColumnShape();
const ObjectShape& GroupShape();
const ObjectShape& StudyCalibrationShape();
const ObjectShape& PointShape();
const ObjectShape& PanelShape();
const ObjectShape& SeriesShape();

}  // namespace rehearse
