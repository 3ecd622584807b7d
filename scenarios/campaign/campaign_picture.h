// A run of weeks as a picture: tokens over days of the median seed with what interrupts it, where
// the time goes, and how much of it is training by the interval between checkpoints.
#pragma once

#include <string>

#include "scenarios/campaign/campaign.h"

namespace rehearse {

std::string CampaignSvg(const Campaign& campaign, const std::string& title);

}  // namespace rehearse
