// What `rehearse validate` prints and draws.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/sweeping/validation.h"
#include "sim/report/data_table.h"

namespace rehearse {

std::string ToText(const ValidationTable& table, const Validation& validation, bool color);
// The groups, and the rows below them, for READMEs.
std::string ToMarkdown(const ValidationTable& table, const Validation& validation);
// A row for each row of the table, with all digits.
DataTable TableOf(const ValidationTable& table, const Validation& validation);
// {"schema": "rehearse.validation.v1", "table", "groups": [...], "families": [...],
// "rows": [...]}
nlohmann::ordered_json ToJson(const ValidationTable& table, const Validation& validation);
// Predicted against measured MFU, with a point for each row and a colour for each group, the
// diagonal, and 10 % on both sides of it.
std::string ValidationSvg(const ValidationTable& table, const Validation& validation);

}  // namespace rehearse
