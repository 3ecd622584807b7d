// The tables of a study (scenarios/sweeping/study.h says what they mean).
#pragma once

#include "scenarios/sweeping/study.h"
#include "sim/base/json_fields.h"

namespace rehearse {

// A study with "groups", or one with the keys of its only group beside the others.
inline constexpr const char* kWithGroups = "where there are \"groups\"";
inline constexpr const char* kWithout = "where there are no \"groups\"";

// Changes and names of points are read by hand: changes with paths from the study's folder, names
// when all points are known.
const Fields<Study>& StudyFields();
const Fields<StudyGroup>& GroupFields();
const Fields<StudyCalibration>& StudyCalibrationFields();
const Fields<StudyPoint>& PointFields();
const Fields<StudyPanel>& PanelFields();
const Fields<PanelSeries>& SeriesFields();
const ObjectShape& PointsWhereShape();

}  // namespace rehearse
