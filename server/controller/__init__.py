"""Location Agent Controller: enrols agents, hands them their plans and takes their reports."""
