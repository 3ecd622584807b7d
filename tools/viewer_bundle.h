// What is compiled into the program: tools/viewer/bundle and scenarios/lessons.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// "viewer": the program of `rehearse report`'s page. "simulator": what its live pages play with,
// gzipped (tools/viewer/live).
std::string ViewerBundle(std::string_view name);

// "lessons": what scenarios/reporting/lesson.h reads; else the scenario of the lesson of that name.
std::string LessonFile(std::string_view name);

}  // namespace rehearse
