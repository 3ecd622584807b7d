// --format, for all commands: one reader, given the formats that a command has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "sim/report/data_table.h"

namespace rehearse {

enum class OutputFormat : uint8_t { kText, kJson, kCsv, kJsonLines, kMarkdown };

const char* Name(OutputFormat format);  // "text", "json", "csv", "jsonl", "markdown"

// The formats of a command that prints rows.
inline const std::vector<OutputFormat> kTableFormats = {
    OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv, OutputFormat::kJsonLines};
inline const std::vector<OutputFormat> kTextAndJson = {OutputFormat::kText, OutputFormat::kJson};

// Adds --format, which is text if not given; `rows` says what a row of csv and jsonl is ("a row for
// each size"), if the command has these formats.
void AddFormatOption(boost::program_options::options_description& options,
                     const std::vector<OutputFormat>& formats, const std::string& rows = "");

// Reads one of `formats`; Error with "did you mean" for anything else. `of` names what has only
// these ("--explain"), if the command has more.
OutputFormat ReadFormat(const boost::program_options::variables_map& values,
                        const std::vector<OutputFormat>& formats, const std::string& of = "");

bool IsTable(OutputFormat format);  // csv or jsonl
// Prints the rows in one of these two formats.
std::string Print(const DataTable& table, OutputFormat format);

}  // namespace rehearse
