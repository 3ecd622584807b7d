// Numbers of a diagnosis in words.
#pragma once

#include <string>

namespace rehearse {

// "1 in 23", of cases in which nothing is wrong.
std::string ChanceWords(double chance);
// "86 %"; never 0 or 100, since there may be what no table has.
std::string ProbabilityWords(double probability);
// How likely it is that no cause of the table is it.
std::string UnexplainedWords(double nothing_wrong, double something_else);
// "the cable is slow (21 % of the bandwidth; 19 % to 23 % fit about as well)": a summary, a
// strength in words, what stands behind it, and the least and most, which may be the same.
std::string SummaryWords(const std::string& summary, const std::string& strength, const char* of,
                         const std::string& low, const std::string& high);

// Of two causes at once, in words: "two at once: the cable is slow (20 %), and NVLS is off".
std::string PairWords(const std::string& first, const std::string& second);

}  // namespace rehearse
