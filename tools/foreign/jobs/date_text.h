// The time of a date as schedulers write it: "2020-06-09 18:41:01", with a "T" in place of the
// blank, parts of a second, or a zone behind it ("+08:00", "Z", "PST", "PDT").
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

struct DatedTime {
  double seconds = 0;  // since 1970, in UTC where there is a zone
  bool has_zone = false;
};

// Of the years 1970 to 2069, whose distances fit a job trace (scenarios/readers/job_trace.h).
// Nothing for what is no such date.
std::optional<DatedTime> ParseDate(std::string_view text);

}  // namespace rehearse
